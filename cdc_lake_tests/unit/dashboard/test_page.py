"""The page: it is self-contained, contains the query results, and never runs data as code."""

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
from cdc_lake.dashboard.render import Rendered, render

from .page_reader import Page
from .shop import BAR_VALUES, BARS, DECLARED, DOTS, NOTE, RENDERED_AT, RESULTS, TOTAL, query


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    return render(DashboardSpec.model_validate(DECLARED), query, RENDERED_AT, NOTE)


@pytest.fixture(scope="module")
def page(rendered: Rendered) -> Page:
    return Page(rendered.html)


def test_the_page_fetches_nothing(page: Page) -> None:
    assert page.references == ["data:,"]
    assert not {"img", "iframe", "object", "embed"} & set(page.tags)
    assert page.tags.count("link") == 1
    assert page.policy.startswith("default-src 'none'; ")
    assert "@import" not in page.html.split("</style>")[0]


def test_the_page_contains_the_chart_library_once(page: Page, rendered: Rendered) -> None:
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
def test_the_table_contains_the_query_result(page: Page, rendered: Rendered, visual: str, sql: str) -> None:
    heading, *rows = page.tables[f"{visual}-table"]
    assert rows == [[exact(value) for value in row] for row in RESULTS[sql].rows]
    assert rendered.rows[visual] == len(RESULTS[sql].rows)
    assert heading[:1] == ["Customer"]


def test_charts_contain_the_same_numbers_and_the_declared_tooltips(page: Page) -> None:
    values = page.values("bars")
    assert [row["revenue"] for row in values] == [float(str(row[1])) for row in RESULTS[BARS].rows]
    tooltip = page.charts["bars"]["spec"]["encoding"]["tooltip"]
    assert tooltip[:2] == [
        {"field": "name", "title": "Customer"},
        {"field": "revenue", "title": "Revenue", "format": "$,.0f"},
    ]


def test_values_are_shown_formatted_and_exact(page: Page) -> None:
    assert "<script>alert('x')</script> leads" in page.text
    assert "<script>alert('x')</script> has 73.0% of $1,234,568." in page.text
    assert 'value="1234567.8950"' in page.html


def test_rows_without_a_number_for_the_chart_are_only_in_the_table(page: Page) -> None:
    assert "Echo" not in {row["name"] for row in page.values("dots")}
    assert "1 of 4 rows have no value for the chart and appear only in the table." in page.text


def test_the_page_names_time_source_sql_and_number_of_rows(page: Page) -> None:
    for text in ("2026-03-01 09:30:00 UTC", "shop.sales", NOTE, "Table: 4 rows, exact values", BARS, BAR_VALUES):
        assert text in page.text
    assert "Show all 4" in page.text


def test_data_is_never_code(page: Page, rendered: Rendered) -> None:
    assert len(page.scripts) == 3
    assert "<script>alert" not in rendered.html
    assert "<img src=x" not in rendered.html
    assert page.values("bars")[2]["name"] == "</script>\u2028Corp"


def test_previews_are_pngs_of_sensible_size(rendered: Rendered) -> None:
    assert set(rendered.previews) == {"bars", "dots"}
    for png in rendered.previews.values():
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", png[16:24])
        assert 700 <= width <= 1600
        assert 100 <= height <= 1600
        assert len(png) < 400_000


def test_the_page_of_an_empty_dataset_reports_that(spec: DashboardSpec) -> None:
    def empty(sql: str) -> Rows:
        nothing = {TOTAL: ((None, 0),), BAR_VALUES: ((None, None),)}
        return Rows(RESULTS[sql].columns, nothing.get(sql, ()))

    result = render(spec, empty, RENDERED_AT, NOTE)
    page = Page(result.html)
    assert "No data yet." in page.text
    assert page.text.count("No rows to draw.") == 2
    assert (result.previews, result.rows, page.charts) == ({}, {"bars": 0, "dots": 0}, {})
    assert "–" in page.text  # noqa: RUF001 - the dash for the missing revenue
    assert "leads" not in page.text


@pytest.mark.parametrize(
    ("sql", "result", "expected"),
    [
        (BARS, Rows(("name", "revenue")), "visual bars: the query does not return running; it returns name, revenue"),
        (BARS, Rows(("name", "revenue", "running", "x")), "visual bars: the query returns x, which"),
        (BARS, Rows(("name", "revenue", "running"), (("a", "1", 0.1),)), "visual bars: row 1, column revenue: '1'"),
        (BARS, Rows(("name", "revenue", "running"), (("a", 1, float("nan")),)), "row 1, column running: nan"),
        (BAR_VALUES, Rows(("leader", "share"), (("a", 1), ("b", 2))), "values of visual bars: the query returns 2"),
        (TOTAL, Rows(("revenue",)), "key_figures: the query does not return sales"),
        (
            DOTS,
            Rows(RESULTS[DOTS].columns, (("a", 1, 1, True),) * 5001),
            "returns 5,001 rows, but a chart can show",
        ),
    ],
)
def test_a_query_result_that_does_not_match_is_rejected(
    spec: DashboardSpec, sql: str, result: Rows, expected: str
) -> None:
    with pytest.raises(DashboardError, match=re.escape(expected)):
        render(spec, lambda sql_: result if sql_ == sql else query(sql_), RENDERED_AT, NOTE)


def test_a_time_without_time_zone_is_rejected(spec: DashboardSpec) -> None:
    with pytest.raises(ValueError, match="rendered_at has no time zone"):
        render(spec, query, datetime(2026, 3, 1), NOTE)


def test_a_result_with_one_row_is_rendered(
    declared: dict[str, Any], load: Callable[[dict[str, Any]], DashboardSpec]
) -> None:
    def first(sql: str) -> Rows:
        return Rows(query(sql).columns, query(sql).rows[:1])

    assert render(load(declared), first, RENDERED_AT, NOTE).rows == {"bars": 1, "dots": 1}


def test_an_error_of_vega_lite_names_the_visual(
    declared: dict[str, Any], load: Callable[[dict[str, Any]], DashboardSpec]
) -> None:
    declared["visuals"][1]["chart"]["mark"] = "pastry"
    with pytest.raises(DashboardError, match=r"Cannot draw visual dots: Vega-Lite rejects the chart \("):
        render(load(declared), query, RENDERED_AT, NOTE)
