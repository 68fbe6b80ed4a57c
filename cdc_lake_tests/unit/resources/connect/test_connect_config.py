"""Connector configurations as data files."""

import json
import re
from pathlib import Path

import pytest

from resources.connect.connector_config import placeholders, render, table_pattern
from resources.errors import ConnectorConfigInvalid

NORTHWIND = Path(__file__).parents[4] / "connectors" / "debezium-postgres.json"


def file(folder: Path, content: object) -> Path:
    path = folder / "connector.json"
    path.write_text(json.dumps(content))
    return path


def test_placeholders_are_filled_and_connects_own_syntax_is_left_alone(tmp_path: Path) -> None:
    path = file(tmp_path, {"a": "{{x}}-{{ y_2 }}", "password": "${file:/s.properties:key}", "sql": "{} {{x}}"})
    assert render(path, {"x": "1", "y_2": "${file:p:k}"}) == {
        "a": "1-${file:p:k}",
        "password": "${file:/s.properties:key}",
        "sql": "{} 1",
    }


def test_a_value_is_not_read_for_placeholders(tmp_path: Path) -> None:
    assert render(file(tmp_path, {"a": "{{x}}"}), {"x": "{{y}}"}) == {"a": "{{y}}"}


@pytest.mark.parametrize(("values", "named"), [({}, "asks for x"), ({"x": "1", "z": "2"}, "no placeholder for z")])
def test_missing_and_unused_values_are_named(tmp_path: Path, values: dict[str, str], named: str) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=named):
        render(file(tmp_path, {"a": "{{x}}"}), values)


@pytest.mark.parametrize("content", [["a"], {"a": 1}, "a"])
def test_what_isnt_an_object_of_strings_is_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(ConnectorConfigInvalid, match="strings"):
        render(file(tmp_path, content), {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=r"none\.json"):
        render(tmp_path / "none.json", {})


def test_table_patterns_match_one_table_each() -> None:
    first, second = table_pattern([("datalake", "cdc_events"), ("a.b", "T+x")]).split(",")
    assert re.fullmatch(first, "datalake.cdc_events")
    assert not re.fullmatch(first, "datalake_cdc_events")
    assert re.fullmatch(second, "a.b.T+x")
    with pytest.raises(ConnectorConfigInvalid, match="comma"):
        table_pattern([("s", "a,b")])


def test_northwinds_connector_has_no_secret_and_every_setting_is_explained() -> None:
    rendered = render(NORTHWIND, {name: f"<{name}>" for name in placeholders(NORTHWIND)})
    assert rendered["database.password"] == "<password>"
    readme = NORTHWIND.with_name("README.md").read_text()
    for name in placeholders(NORTHWIND):
        assert f"`{name}`" in readme
