"""The page in a browser: charts without a network, layout, labels that do not overlap, and no code from data."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from cdc_lake.dashboard import DashboardSpec
from cdc_lake.dashboard.render import render
from cdc_lake_tests.unit.dashboard import northwind
from cdc_lake_tests.unit.dashboard.shop import DECLARED, NOTE, RENDERED_AT, query

DRAWN = "[...document.querySelectorAll('.chart')].every(chart => chart.dataset.drawn)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pages: shop.html, with HTML in its data, and northwind.html."""
    path = tmp_path_factory.mktemp("pages")
    shop = render(DashboardSpec.model_validate(DECLARED), query, RENDERED_AT, NOTE)
    (path / "shop.html").write_text(shop.html, encoding="utf-8")
    customers = render(northwind.SPEC, northwind.sqlite_query(northwind.order_lines()), RENDERED_AT, NOTE)
    (path / "northwind.html").write_text(customers.html, encoding="utf-8")
    return path


def _open(browser: Browser, path: Path, width: int = 800, scheme: str = "light") -> tuple[Page, list[str]]:
    """Open a page; return it with its console messages, errors, dialogs and requests."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    events: list[str] = []
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("dialog", lambda dialog: events.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: events.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    page.wait_for_function(DRAWN)
    return page, [event for event in events if event != "data:,"]


@pytest.mark.parametrize("file", ["shop.html", "northwind.html"])
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (768, "dark"), (1920, "light")])
def test_charts_are_drawn_and_fit_the_window(
    browser: Browser, folder: Path, file: str, width: int, scheme: str
) -> None:
    page, events = _open(browser, folder / file, width, scheme)
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


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_labels_of_dots_do_not_overlap_and_stay_inside(browser: Browser, folder: Path, width: int) -> None:
    page, _ = _open(browser, folder / "northwind.html", width)
    labels = page.locator("#quantity_and_revenue .role-mark > text:not([opacity='0'])").all()
    boxes = {label.text_content(): label.bounding_box() for label in labels if label.text_content()}
    svg = page.locator("#quantity_and_revenue svg").bounding_box()
    assert svg
    assert len(boxes) == 8  # five infrequent customers with a high value, and the three with the most orders
    for box in boxes.values():
        assert box
        assert svg["x"] <= box["x"]
        assert box["x"] + box["width"] <= svg["x"] + svg["width"]
    for one, other in itertools.combinations(boxes.values(), 2):
        assert one
        assert other
        horizontal = one["x"] + one["width"] <= other["x"] + 1 or other["x"] + other["width"] <= one["x"] + 1
        vertical = one["y"] + one["height"] <= other["y"] + 3 or other["y"] + other["height"] <= one["y"] + 3
        assert horizontal or vertical
    page.close()


def test_colours_follow_the_theme(browser: Browser, folder: Path) -> None:
    page, _ = _open(browser, folder / "northwind.html")
    text = page.locator("#revenue_by_customer text").first
    light = text.evaluate("(element) => getComputedStyle(element).fill")
    page.emulate_media(color_scheme="dark")
    assert text.evaluate("(element) => getComputedStyle(element).fill") != light
    page.close()


def test_a_button_shows_all_rows(browser: Browser, folder: Path) -> None:
    page, _ = _open(browser, folder / "shop.html")
    bars = "#bars .mark-rect.role-mark path"
    assert page.locator(bars).count() == 3
    page.get_by_role("button", name="Show all 4").click()
    page.wait_for_function(f"document.querySelectorAll('{bars}').length === 4")
    page.get_by_role("button", name="Show the first 3").click()
    page.wait_for_function(f"document.querySelectorAll('{bars}').length === 3")
    page.close()


def test_tooltips_show_data_as_text(browser: Browser, folder: Path) -> None:
    page, _ = _open(browser, folder / "shop.html")
    page.locator("#bars .mark-rect.role-mark path").first.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "<script>alert('x')</script>" in tooltip.inner_text()
    assert "$900,000" in tooltip.inner_text()
    page.close()


def test_the_browser_refuses_to_fetch(browser: Browser, folder: Path) -> None:
    page, _ = _open(browser, folder / "shop.html")
    refused = """new Promise((done) => {
        document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
        fetch("http://127.0.0.1:9/").catch(() => {});
    })"""
    assert page.evaluate(refused) == "connect-src"
    page.close()
