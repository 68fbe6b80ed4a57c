"""Dagster's UI and daemon: what a person has made there is well, and sensors carry a change without anybody.

First in a browser, then by what its pages ask; in one module, for each start of Dagster's takes half a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.e2e.dagster_ui import Ui, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Response

CHECKS = {
    "source/cdc_events": 3,
    "topic/cdc_events": 6,
    "raw/cdc_events": 5,
    "lake/cdc_events": 4,
    "dataset/order_items": 1,
}
"""How many checks each asset has; the dashboard has none."""

_LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
_RUN = "query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

WIDE = {"width": 3000, "height": 900}
"""So wide that the graph shows the nodes with their details, all six in one line."""


@pytest.fixture
def faults() -> list[str]:
    """What the page's console calls an error, and what the UI's server refused."""
    return []


@pytest.fixture
def page(browser: Browser, ui: Ui, faults: list[str]) -> Iterator[Page]:
    """A page that writes down its faults, and skips Dagster's greeting whenever that stands in the way."""
    page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type]
    page.set_default_timeout(30_000)

    def refused(response: Response) -> None:
        if response.url.startswith(ui.address) and response.status >= 400:
            faults.append(f"{response.status} {response.url}")

    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("response", refused)
    page.add_locator_handler(page.get_by_role("button", name="Skip", exact=True), lambda skip: skip.click())
    yield page
    page.close()


@pytest.mark.timeout(900)
def test_materialize_all(page: Page, ui: Ui, cli: CommandLine, faults: list[str]) -> None:
    from playwright.sync_api import expect

    page.goto(f"{ui.address}/locations/cdc_lake.definitions/asset-groups/northwind/lineage")
    for name, assets in {"cdc_events": 4, "order_items": 1, "customers": 1}.items():
        expect(page.get_by_text(name, exact=True)).to_have_count(assets, timeout=30_000)

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
        # The sensors of the scheduled checks run them too, at Dagster's first start; until that run has ended,
        # they count as not passed.
        expect(passed).to_have_text(f"{count} / {count} Passed", timeout=300_000)
    page.locator('a[href*="/lake/cdc_events?view=checks"]').click()
    expect(page.get_by_text("Checks (4)", exact=True)).to_be_visible()
    expect(page.get_by_text("Succeeded", exact=True)).to_have_count(4)

    rows = cli.query("SELECT count(*) AS n FROM cdc_events_current")[0]["n"]
    page.get_by_role("tab", name="Overview").first.click()
    expect(page.get_by_text(f"{rows:,}", exact=True).first).to_be_visible()
    assert faults == []


def test_no_page_of_another_origin_is_answered(ui: Ui) -> None:
    """By `cdc-lake dev` as it is started; each rule is in unit/webserver/test_requests.py."""
    query = {"query": "{ version }"}
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = httpx.post(f"{ui.address}/graphql", json=query, headers=headers, trust_env=False)
        assert answer.status_code in {400, 403}
    assert httpx.get(f"{ui.address}/graphql", params=query, trust_env=False).status_code == 403


@pytest.mark.timeout(1200)
def test_a_run_from_the_ui_and_one_from_the_sensors(ui: Ui, cli: CommandLine) -> None:
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "cdc_lake.definitions",
        "pipelineName": "northwind",
    }
    launched = ui.ask(_LAUNCH, params={"selector": selector, "mode": "default", "runConfigData": {}})["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    run = launched["run"]["runId"]
    status = until(
        lambda: ui.ask(_RUN, id=run)["runOrError"]["status"], lambda s: s in {"SUCCESS", "FAILURE", "CANCELED"}, 400
    )
    assert status == "SUCCESS"

    # More than flush_records changes: the sensor need not wait for flush_seconds.
    changed = dict(
        cli.ask_source(
            "update datalake.orders set required_date = required_date + 1 where order_id between 10300 and 10379 "
            "returning order_id, required_date::text"
        )
    )
    until(
        lambda: cli.query("SELECT CAST(required_date AS varchar) AS d FROM cdc_events WHERE order_id = 10350")[0]["d"],
        lambda found: found == changed[10350],
        600,
    )
