"""Errors in a dashboard's YAML name the file, the field and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc_lake.dashboard import DashboardError, DashboardSpec, load_dashboard

Load = Callable[[dict[str, Any]], DashboardSpec]


def test_a_valid_declaration_is_loaded(spec: DashboardSpec) -> None:
    assert [visual.name for visual in spec.visuals] == ["bars", "dots"]
    assert spec.currency == "$"


def _set(declared: Any, path: str, value: object) -> None:  # noqa: ANN401  - dicts and lists
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        declared = declared[part]
    declared[last] = value
    if value is None:
        del declared[last]


QUICKSIGHT = {"sql": "SELECT name FROM sales", "data_set": "data_set.json", "definition": "definition.json"}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("colour", "red", ["colour: unknown field; allowed here: title, subtitle"]),
        ("visuals.0.colour", "red", ["visuals[0].colour: unknown field; allowed here: sql, columns, name"]),
        ("visuals.0.show", 0, ["visuals[0].show", "greater than or equal to 1"]),
        ("key_figures.columns.revenue.format", "euro", ["key_figures.columns.revenue.format", "'money'", "'euro'"]),
        ("visuals.0.name", "Bars!", ["visuals[0].name", "pattern", "'Bars!'"]),
        ("visuals", [], ["visuals", "at least 1"]),
        (
            "visuals.0.chart.encoding.x.field",
            "turnover",
            ["visuals[0]: chart uses the field 'turnover'; allowed: name, revenue, running"],
        ),
        ("visuals.0.chart.data", {"url": "x.csv"}, ["visuals[0]: chart has data; allowed: "]),
        ("visuals.0.chart.mark", None, ["visuals[0]: chart has neither mark nor layer"]),
        ("visuals.0.chart", "chart.json", ["visuals[0].chart: the file", "chart.json does not exist"]),
        ("visuals.0.chart", "broken.json", ["visuals[0].chart: broken.json is not valid JSON", "line 1 column 2"]),
        (
            "visuals.0.message",
            "{sum}",
            ["visuals[0]: title or message uses the value 'sum'; allowed: revenue, sales,"],
        ),
        (
            "visuals.1.title",
            "{leader}",
            ["visuals[1]: title or message uses the value 'leader'; allowed: revenue"],
        ),
        ("visuals.0.message", "{revenue:.2f}", ["visuals[0].message", "allowed: a value's name in braces"]),
        ("visuals.1.name", "bars", ["visuals: several have the name bars; give each a name of its own"]),
        ("visuals.0.sql", "none.sql", ["visuals[0].sql", "none.sql does not exist"]),
        ("visuals.0.sql", "../x.sql", ["visuals[0].sql: ../x.sql is outside", "allowed"]),
        ("visuals.0.sql", "SELEC 1", ["visuals[0].sql: is not valid Athena SQL"]),
        ("visuals.0.sql", "DROP TABLE sales", ["visuals[0].sql: allowed: exactly one SELECT"]),
        ("visuals.0.sql", "SELECT 1 FROM sales; SELECT 2", ["visuals[0].sql: allowed: exactly one SELECT"]),
        (
            "visuals.0.sql",
            "SELECT 1 FROM staff",
            ["visuals[0].sql: reads staff; allowed: sales in the database shop"],
        ),
        ("visuals.0.values.sql", "SELECT 1 FROM hr.sales", ["visuals[0].values.sql: reads hr.sales"]),
        ("quicksight", {"sql": "SELECT 1 FROM sales"}, ["quicksight.data_set: missing; give the .json file"]),
        ("quicksight", QUICKSIGHT, ["quicksight: data_set.json: Name: unknown placeholder name; allowed: data_source"]),
    ],
)
def test_an_error_names_file_field_and_what_is_allowed(
    declared: dict[str, Any], load: Load, tmp_path: Path, path: str, value: object, expected: list[str]
) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "data_set.json").write_text(json.dumps({"Name": "{{name}}"}))
    (tmp_path / "definition.json").write_text("{}")
    _set(declared, path, value)
    with pytest.raises(DashboardError) as error:
        load(declared)
    for text in ("dashboard.yaml: ", *expected):
        assert text in str(error.value)


def test_a_missing_field_is_described(declared: dict[str, Any], load: Load) -> None:
    del declared["dataset"]
    with pytest.raises(DashboardError, match=r"dataset: missing; give the table or view that all of the dashboard's"):
        load(declared)


def test_all_errors_are_reported_at_once(declared: dict[str, Any], load: Load) -> None:
    declared["key_figures"]["columns"]["revenue"]["format"] = "euro"
    declared["visuals"][0]["title"] = ""
    with pytest.raises(DashboardError) as error:
        load(declared)
    assert len(str(error.value).splitlines()) == 2


def test_sql_and_charts_can_be_files(declared: dict[str, Any], load: Load, tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "bars.sql").write_text("-- a comment\nWITH s AS (SELECT * FROM shop.sales) SELECT * FROM s\n")
    (tmp_path / "bars.json").write_text(json.dumps(declared["visuals"][0]["chart"]))
    inline = load(declared).visuals[0].chart
    declared["visuals"][0] |= {"sql": "sql/bars.sql", "chart": "bars.json"}
    assert load(declared).visuals[0].sql.endswith("SELECT * FROM s")
    assert load(declared).visuals[0].chart == inline


def test_a_missing_or_invalid_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "dashboard.yaml"
    with pytest.raises(DashboardError, match=r"Cannot read the dashboard .*: No such file"):
        load_dashboard(path)
    path.write_text("title: [")
    with pytest.raises(DashboardError, match="is not valid YAML"):
        load_dashboard(path)
    path.write_text("")
    with pytest.raises(DashboardError, match=r"dashboard\.yaml: dashboard: give a mapping with title, "):
        load_dashboard(path)
