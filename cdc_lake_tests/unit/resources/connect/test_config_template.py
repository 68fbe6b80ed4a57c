"""Connector configurations rendered from JSON templates."""

import json
import re
from pathlib import Path

import pytest

from resources.connect.config_template import column_pattern, placeholders, render, table_pattern
from resources.errors import ConnectorConfigInvalid

NORTHWIND = Path(__file__).parents[4] / "connectors" / "debezium-postgres.json"


def file(folder: Path, content: object) -> Path:
    path = folder / "connector.json"
    path.write_text(json.dumps(content))
    return path


def test_placeholders_are_filled_and_connect_references_are_kept(tmp_path: Path) -> None:
    path = file(tmp_path, {"a": "{{x}}-{{ y_2 }}", "password": "${file:/s.properties:key}", "sql": "{} {{x}}"})
    assert render(path, {"x": "1", "y_2": "${file:p:k}"}) == {
        "a": "1-${file:p:k}",
        "password": "${file:/s.properties:key}",
        "sql": "{} 1",
    }


def test_placeholders_in_values_are_not_filled(tmp_path: Path) -> None:
    assert render(file(tmp_path, {"a": "{{x}}"}), {"x": "{{y}}"}) == {"a": "{{y}}"}


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "there is no value for the placeholder x"), ({"x": "1", "z": "2"}, "no placeholder for z")],
)
def test_missing_and_unused_values_are_named(tmp_path: Path, values: dict[str, str], message: str) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=message):
        render(file(tmp_path, {"a": "{{x}}"}), values)


@pytest.mark.parametrize("content", [["a"], {"a": 1}, "a"])
def test_other_json_than_an_object_of_strings_is_rejected(tmp_path: Path, content: object) -> None:
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


def test_column_patterns_match_one_column_each_in_its_case() -> None:
    names = ["phone", "Total", "a,b", "x+(y) ", "${file:/secrets:pw}", "größe"]
    patterns = column_pattern(("sales", "orders", name) for name in names).split(",")
    # As Debezium does, which ignores case and trims the parts of the list.
    matched = [
        [
            name
            for name in [*names, "PHONE", "total"]
            if re.fullmatch(each.strip(), f"sales.orders.{name}", re.IGNORECASE)
        ]
        for each in patterns
    ]
    assert matched == [[name] for name in names]
    assert not re.fullmatch(patterns[0], "sales.orders2.phone")
    assert not any("${" in each for each in patterns), "Connect would replace it"


def test_northwinds_connector_has_no_secret_and_its_placeholders_are_documented() -> None:
    rendered = render(NORTHWIND, {name: f"<{name}>" for name in placeholders(NORTHWIND)})
    assert rendered["database.password"] == "<password>"
    readme = NORTHWIND.with_name("README.md").read_text()
    for name in placeholders(NORTHWIND):
        assert f"`{name}`" in readme
