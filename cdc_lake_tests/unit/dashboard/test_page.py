"""The page: it stands alone, holds what the queries gave, and data in it stays data."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from cdc_lake.dashboard import DashboardError, DashboardSpec, Rows
from cdc_lake.dashboard.formats import exact
from cdc_lake.dashboard.render import RenderedDashboard, render

from .page_reader import Page
from .shop import ANSWERS, BAR_FIGURES, BARS, DECLARED, DOTS, MADE, NOTE, TOTAL, answer


@pytest.fixture(scope="module")
def rendered() -> RenderedDashboard:
    return render(DashboardSpec.model_validate(DECLARED), answer, MADE, NOTE)


@pytest.fixture(scope="module")
def page(rendered: RenderedDashboard) -> Page:
    return Page(rendered.html)


def test_nothing_is_fetched(page: Page) -> None:
    assert page.references == ["data:,"]
    assert not {"img", "iframe", "object", "embed"} & set(page.tags)
    assert page.tags.count("link") == 1
    assert page.policy.startswith("default-src 'none'; ")
    assert "@import" not in page.html.split("</style>")[0]


def test_the_library_is_there_once_for_all_charts(page: Page, rendered: RenderedDashboard) -> None:
    libraries = [text for _, text in page.scripts if "window.vegaEmbed" in text]
    assert len(libraries) == 1
    assert len(page.charts) == 2
    assert len(libraries[0]) > 500_000
    assert len(rendered.html.encode()) < len(libraries[0].encode()) + 100_000


def test_only_the_pages_own_scripts_may_run(page: Page) -> None:
    for attributes, text in page.scripts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert (f"'sha256-{digest}'" in page.policy) == (attributes.get("type") != "application/json")


@pytest.mark.parametrize(("visual", "sql"), [("bars", BARS), ("dots", DOTS)])
def test_the_table_holds_what_the_query_gave(page: Page, rendered: RenderedDashboard, visual: str, sql: str) -> None:
    heading, *rows = page.tables[f"{visual}-table"]
    assert rows == [[exact(value) for value in row] for row in ANSWERS[sql].rows]
    assert rendered.rows[visual] == len(ANSWERS[sql].rows)
    assert heading[:1] == ["Customer"]


def test_the_charts_hold_the_same_numbers(page: Page) -> None:
    values = page.values("bars")
    assert [row["revenue"] for row in values] == [float(str(row[1])) for row in ANSWERS[BARS].rows]
    assert values[0]["revenue__text"] == "$900,000"
    assert [row["_tier"] for row in values] == ["highlight", "marked", "other", "other"]


def test_figures_are_given_exactly_and_as_shown(page: Page, rendered: RenderedDashboard) -> None:
    assert {name: (figure.value, figure.text) for name, figure in rendered.figures.items()} == {
        "revenue": (ANSWERS[TOTAL].rows[0][0], "$1,234,568"),
        "sales": (4, "4"),
        "leader": ("<script>alert('x')</script>", "<script>alert('x')</script>"),
        "share": (0.7295, "73.0%"),
    }
    assert "<script>alert('x')</script> has 73.0% of $1,234,568." in page.text
    assert 'value="1234567.8950"' in page.html


def test_what_marks_the_rows_that_stand_out(page: Page) -> None:
    dots = {row["name"]: row for row in page.values("dots")}
    assert [name for name, row in dots.items() if row["_tier"] == "highlight"] == ["B & Sons", "Delta"]
    assert {name for name, row in dots.items() if "_label" in row} == set(dots)
    assert "Echo" not in dots
    assert "1 of 4 rows lack a value and are not drawn" in page.text


def test_the_page_says_when_from_what_and_how_much(page: Page) -> None:
    for text in ("2026-03-01 09:30:00 UTC", "shop.sales", NOTE, "Revenue by customer, 4 rows; Habits, 4 rows.", BARS):
        assert text in page.text
    assert "Show all 4" in page.text


def test_data_stays_data(page: Page, rendered: RenderedDashboard) -> None:
    assert len(page.scripts) == 3
    assert "<script>alert" not in rendered.html
    assert "<img src=x" not in rendered.html
    assert page.values("bars")[2]["name"] == "</script>\u2028Corp"


def test_previews_are_pngs_of_sensible_size(rendered: RenderedDashboard) -> None:
    assert set(rendered.previews) == {"bars", "dots"}
    for png in rendered.previews.values():
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", png[16:24])
        assert 700 <= width <= 1600
        assert 100 <= height <= 1600
        assert len(png) < 400_000


def test_an_empty_dataset_gives_a_page_that_says_so(spec: DashboardSpec) -> None:
    def empty(sql: str) -> Rows:
        nothing = {TOTAL: ((None, 0),), BAR_FIGURES: ((None, None),)}
        return Rows(ANSWERS[sql].columns, nothing.get(sql, ()))

    result = render(spec, empty, MADE, NOTE)
    page = Page(result.html)
    assert "No data yet." in page.text
    assert page.text.count("No rows to draw.") == 2
    assert (result.previews, result.rows, page.charts) == ({}, {"bars": 0, "dots": 0}, {})
    assert result.figures["revenue"].text == "–"  # noqa: RUF001


def test_the_same_sql_runs_once(spec: DashboardSpec) -> None:
    asked: list[str] = []

    def query(sql: str) -> Rows:
        asked.append(sql)
        return answer(sql)

    render(spec, query, MADE, NOTE)
    assert asked == [TOTAL, BARS, BAR_FIGURES, DOTS]


@pytest.mark.parametrize(
    ("sql", "result", "expected"),
    [
        (BARS, Rows(("name", "revenue")), "visual bars: the query does not return running; it returns name, revenue"),
        (BARS, Rows(("name", "revenue", "running", "x")), "visual bars: the query returns x, which"),
        (BARS, Rows(("name", "revenue", "running"), (("a", "1", 0.1),)), "visual bars: row 1, column revenue: '1'"),
        (BARS, Rows(("name", "revenue", "running"), (("a", 1, float("nan")),)), "row 1, column running: nan"),
        (BARS, Rows(("name", "revenue", "running"), (("a", 1, 0.5), ("a", 1, 1.0))), "come more than once, first a"),
        (BAR_FIGURES, Rows(("leader", "share"), (("a", 1), ("b", 2))), "figures of visual bars: the query returns 2"),
        (TOTAL, Rows(("revenue",)), "headlines revenue, sales: the query does not return sales"),
        (DOTS, Rows(ANSWERS[DOTS].columns, (("a", 1, 1, 1, True),) * 5001), "returns 5,001 rows, at most 5,000"),
    ],
)
def test_a_result_that_does_not_fit_is_refused(spec: DashboardSpec, sql: str, result: Rows, expected: str) -> None:
    with pytest.raises(DashboardError, match=re.escape(expected)):
        render(spec, lambda asked: result if asked == sql else answer(asked), MADE, NOTE)


def test_a_moment_without_time_zone_is_refused(spec: DashboardSpec) -> None:
    with pytest.raises(ValueError, match="generated_at has no time zone"):
        render(spec, answer, datetime(2026, 3, 1), NOTE)


def test_one_row_is_enough(declared: dict[str, Any], load: Callable[[dict[str, Any]], DashboardSpec]) -> None:
    def first(sql: str) -> Rows:
        return Rows(answer(sql).columns, answer(sql).rows[:1])

    assert render(load(declared), first, MADE, NOTE).rows == {"bars": 1, "dots": 1}
