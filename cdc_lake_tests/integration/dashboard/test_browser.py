"""The page in a real browser: it draws without a network, fits its window, and runs nothing from the data."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from cdc_lake.dashboard import DashboardSpec
from cdc_lake.dashboard.render import render
from cdc_lake_tests.unit.dashboard.shop import DECLARED, MADE, NOTE, answer

DRAWN = "[...document.querySelectorAll('.chart')].every(chart => chart.dataset.drawn)"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    rendered = render(DashboardSpec.model_validate(DECLARED), answer, MADE, NOTE)
    path.write_text(rendered.html, encoding="utf-8")
    return path.as_uri()


def _open(browser: Browser, address: str, width: int, scheme: str) -> tuple[Page, list[str]]:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    events: list[str] = []
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("dialog", lambda dialog: events.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: events.append(request.url) if request.url != address else None)
    page.goto(address)
    page.wait_for_function(DRAWN)
    return page, [event for event in events if event != "data:,"]


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (768, "dark"), (1920, "light")])
def test_it_draws_and_fits(browser: Browser, address: str, width: int, scheme: str) -> None:
    page, events = _open(browser, address, width, scheme)
    assert events == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".chart svg").count() == 2
    for chart in page.locator(".chart").all():
        box, svg = chart.bounding_box(), chart.locator("svg").bounding_box()
        assert box
        assert svg
        assert svg["x"] + svg["width"] <= box["x"] + box["width"] + 1
        assert svg["width"] >= box["width"] * 0.9
    page.close()


def test_more_bars_on_demand(browser: Browser, address: str) -> None:
    page, _ = _open(browser, address, 800, "light")
    bars = page.locator("#bars .mark-rect.role-mark path")
    assert bars.count() == 3
    page.get_by_role("button", name="Show all 4").click()
    page.wait_for_function("document.querySelectorAll('#bars .mark-rect.role-mark path').length === 4")
    page.get_by_role("button", name="Show the first 3").click()
    page.wait_for_function("document.querySelectorAll('#bars .mark-rect.role-mark path').length === 3")
    page.close()


def test_tooltips_show_data_as_text(browser: Browser, address: str) -> None:
    page, _ = _open(browser, address, 800, "light")
    page.locator("#bars .mark-rect.role-mark path").first.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "<script>alert('x')</script>" in tooltip.inner_text()
    assert "$900,000" in tooltip.inner_text()
    page.close()


def test_the_browser_refuses_to_fetch(browser: Browser, address: str) -> None:
    page, _ = _open(browser, address, 800, "light")
    refused = """new Promise((done) => {
        document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
        fetch("http://127.0.0.1:9/").catch(() => {});
    })"""
    assert page.evaluate(refused) == "connect-src"
    page.close()
