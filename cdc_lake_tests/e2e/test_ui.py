"""Dagster's UI and daemon: runs launched in the UI succeed, and sensors apply a change without a user.

In one module, since each start of Dagster takes half a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from cdc_lake_tests.e2e.dagster_ui import Ui, until
from cdc_lake_tests.helpers.command_line import CommandLine

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

CHECKS = {
    "source/cdc_events_source": 3,
    "topic/cdc_events_topic": 6,
    "raw/cdc_events_raw": 5,
    "lake/cdc_events_lake": 4,
    "dataset/order_items": 1,
}
"""The number of checks of each asset; the dashboard has no checks."""

_ENDED = """
query Ended($filter: RunsFilter!) { runsOrError(filter: $filter) { ... on Runs { results { jobName } } } }
"""

WIDE = {"width": 3000, "height": 900}
"""Wide enough for the graph to show all six nodes in one line, with their details."""


@pytest.fixture
def faults() -> list[str]:
    """Return an empty list, to which `page` adds its console errors and the requests that the UI refuses."""
    return []


@pytest.fixture
def page(browser: Browser, ui: Ui, faults: list[str]) -> Iterator[Page]:
    """Open a page that records its faults and skips Dagster's greeting."""
    page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type]
    page.set_default_timeout(30_000)

    def record_failed(response: Response) -> None:
        if response.url.startswith(ui.address) and response.status >= 400:
            faults.append(f"{response.status} {response.url}")

    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("response", record_failed)
    page.add_locator_handler(page.get_by_role("button", name="Skip", exact=True), lambda skip: skip.click())
    yield page
    page.close()


@pytest.mark.timeout(900)
def test_materialize_all_in_the_browser_passes_all_checks(
    page: Page, ui: Ui, cli: CommandLine, faults: list[str]
) -> None:
    from playwright.sync_api import expect

    expect.set_options(timeout=30_000)  # the default of 5 s is too short for a busy machine

    # At Dagster's first start, sensors launch the scheduled checks. Wait until they end. Otherwise one of them could
    # evaluate a check after the run below has planned it, and before that run has materialised the asset. The UI would
    # then never count that check as passed.
    until(
        lambda: {run["jobName"] for run in ui.ask(_ENDED, filter={"statuses": ["SUCCESS"]})["runsOrError"]["results"]},
        lambda ended: ended >= {"northwind_checks", "northwind_daily_checks"},
        300,
    )
    page.goto(f"{ui.address}/locations/cdc_lake.definitions/asset-groups/northwind/lineage")
    for name in (*(asset.rpartition("/")[2] for asset in CHECKS), "customers"):
        expect(page.get_by_text(name, exact=True)).to_have_count(1, timeout=30_000)

    page.get_by_role("button", name="Materialize all").click()
    page.get_by_role("link", name="View", exact=True).click()
    page.wait_for_url("**/runs/*")
    ended = page.get_by_text("Success", exact=True).or_(page.get_by_text("Failure", exact=True))
    expect(ended).to_be_visible(timeout=600_000)
    expect(ended).to_have_text("Success")
    # Each asset and each check is a step of the run.
    expect(page.get_by_text(f"Succeeded ({len(CHECKS) + 1 + sum(CHECKS.values())})")).to_be_visible()

    page.go_back()
    for asset, count in CHECKS.items():
        passed = page.locator(f'a[href*="/{asset}?view=checks"]')
        expect(passed).to_have_text(f"{count} / {count} Passed", timeout=60_000)
    page.locator('a[href*="/lake/cdc_events_lake?view=checks"]').click()
    expect(page.get_by_text("Checks (4)", exact=True)).to_be_visible()
    expect(page.get_by_text("Succeeded", exact=True)).to_have_count(4)

    rows = cli.query("SELECT count(*) AS n FROM cdc_events_current")[0]["n"]
    page.get_by_role("tab", name="Overview").first.click()
    expect(page.get_by_text(f"{rows:,}", exact=True).first).to_be_visible()
    assert faults == []


def test_requests_of_another_origin_are_refused(ui: Ui) -> None:
    """Checks the server of `cdc-lake dev`; unit/webserver/test_requests.py tests each rule."""
    query = {"query": "{ version }"}
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = httpx.post(f"{ui.address}/graphql", json=query, headers=headers, trust_env=False)
        assert answer.status_code in {400, 403}
    assert httpx.get(f"{ui.address}/graphql", params=query, trust_env=False).status_code == 403


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("ui")
def test_sensors_apply_a_change(cli: CommandLine) -> None:
    # More than flush_records changes: the sensor need not wait for flush_seconds.
    changed = dict(
        cli.query_source(
            "update datalake.orders set required_date = required_date + 1 where order_id between 10300 and 10379 "
            "returning order_id, required_date::text"
        )
    )
    until(
        lambda: cli.query("SELECT CAST(required_date AS varchar) AS d FROM cdc_events WHERE order_id = 10350")[0]["d"],
        lambda found: found == changed[10350],
        600,
    )
