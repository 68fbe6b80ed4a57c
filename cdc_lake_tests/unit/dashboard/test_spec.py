"""A declaration that is wrong says where, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc_lake.dashboard import DashboardError, DashboardSpec, load_dashboard

Load = Callable[[dict[str, Any]], DashboardSpec]


def test_a_valid_declaration_loads(spec: DashboardSpec) -> None:
    assert [visual.name for visual in spec.visuals] == ["bars", "dots"]
    assert spec.currency == "$"


def _set(given: Any, path: str, value: object) -> None:  # noqa: ANN401  (dicts and lists in turn)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        given = given[part]
    given[last] = value


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("colour", "red", ["unknown field 'colour'", "allowed: title, subtitle"]),
        ("visuals.0.chart.colour", "red", ["visuals[0].chart: unknown field 'colour'", "highlight"]),
        ("visuals.0.chart.highlight", {"top": 1}, ["visuals[0].chart.highlight: missing field 'by'"]),
        ("visuals.0.chart.highlight.top", 0, ["visuals[0].chart.highlight.top", "greater than or equal to 1"]),
        ("visuals.1.chart.kind", "pie", ["visuals[1].chart.kind: 'pie'", "allowed: bar, scatter"]),
        ("visuals.1.chart", {"x": "a"}, ["visuals[1].chart: missing field 'kind'", "allowed: bar, scatter"]),
        ("headlines.0.format", "euro", ["headlines[0].format", "'money'", "'euro'"]),
        ("headlines.0.name", "Revenue!", ["headlines[0].name", "pattern", "'Revenue!'"]),
        ("visuals", [], ["visuals", "at least 1"]),
        ("visuals.0.chart.x", "turnover", ["visuals[0]: chart.x names 'turnover'", "allowed: name, revenue, running"]),
        ("visuals.0.chart.x", "name", ["chart.x needs a number", "allowed: integer"]),
        ("visuals.1.chart.named.by", "x", ["chart.named.by names 'x'", "allowed: name"]),
        (
            "visuals.0.message",
            "{sum}",
            ["visuals[0].message names the figure 'sum'", "allowed: revenue, sales, leader"],
        ),
        ("visuals.0.message", "{revenue:.2f}", ["visuals[0].message", "allowed: a figure's name in braces"]),
        ("visuals.1.name", "bars", ["visuals: the name 'bars' is given twice"]),
        ("headlines.1.name", "leader", ["figures: the name 'leader' is given twice"]),
        ("headlines.0.sql", "none.sql", ["headlines[0].sql", "none.sql does not exist"]),
        ("headlines.0.sql", "../x.sql", ["headlines[0].sql: ../x.sql leaves", "allowed"]),
        ("visuals.0.sql", "SELEC 1", ["visuals[0].sql"]),
        ("visuals.0.sql", "DROP TABLE sales", ["visuals[0].sql: allowed: exactly one SELECT"]),
        ("visuals.0.sql", "SELECT 1 FROM sales; SELECT 2", ["visuals[0].sql: allowed: exactly one SELECT"]),
        (
            "visuals.0.sql",
            "SELECT 1 FROM staff",
            ["visuals[0].sql: reads staff", "allowed: sales of the database shop"],
        ),
        ("visuals.0.figures.sql", "SELECT 1 FROM hr.sales", ["visuals[0].figures.sql: reads hr.sales"]),
    ],
)
def test_a_fault_names_file_field_and_what_is_allowed(
    declared: dict[str, Any], load: Load, path: str, value: object, expected: list[str]
) -> None:
    _set(declared, path, value)
    with pytest.raises(DashboardError) as error:
        load(declared)
    for text in ("dashboard.yaml: ", *expected):
        assert text in str(error.value)


def test_a_missing_field_is_described(declared: dict[str, Any], load: Load) -> None:
    del declared["visuals"][0]["message"], declared["dataset"]
    with pytest.raises(DashboardError, match=r"missing field 'dataset' \(the table or view all its SQL reads\)"):
        load(declared)


def test_all_faults_are_told_at_once(declared: dict[str, Any], load: Load) -> None:
    declared["headlines"][0]["format"] = "euro"
    declared["visuals"][0]["title"] = ""
    with pytest.raises(DashboardError) as error:
        load(declared)
    assert len(str(error.value).splitlines()) == 2


def test_sql_may_stand_in_a_file_beside_the_declaration(declared: dict[str, Any], load: Load, tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "bars.sql").write_text("-- a comment\nWITH s AS (SELECT * FROM shop.sales) SELECT * FROM s\n")
    declared["visuals"][0]["sql"] = "sql/bars.sql"
    assert load(declared).visuals[0].sql.endswith("SELECT * FROM s")


def test_a_file_that_is_no_yaml_or_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "dashboard.yaml"
    with pytest.raises(DashboardError, match="can't be read"):
        load_dashboard(path)
    path.write_text("title: [")
    with pytest.raises(DashboardError, match="is not valid YAML"):
        load_dashboard(path)
    path.write_text("")
    with pytest.raises(DashboardError, match=r"dashboard\.yaml: "):
        load_dashboard(path)
