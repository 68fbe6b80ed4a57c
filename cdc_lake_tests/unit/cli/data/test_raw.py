"""`cdc-lake raw ls` and `cat`: output for the shop's raw objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cdc_lake.cli.app import app
from cdc_lake.contract.errors import ContractError
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

FIRST = "raw/shop/shop.sales.orders/partition=0/shop.sales.orders+0+00000000000000000000+00000000000000000001.json"
SECOND = "raw/shop/shop.sales.orders/partition=0/shop.sales.orders+0+00000000000000000002+00000000000000000002.json"


def run(*arguments: str) -> Result:
    """Run a `raw` command."""
    return CliRunner().invoke(app, ["raw", *arguments])


def lines(*arguments: str) -> list[dict[str, Any]]:
    """Return the JSON objects that a command prints, one per line."""
    found = run(*arguments)
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.fixture
def landed(commands: Shop) -> Shop:
    """The shop with two landed batches of orders and one of customers."""
    commands.order(1, customer_id="ANNE", total="1.50")
    commands.order(2, customer_id="BERT")
    commands.land(commands.orders)
    commands.order(1, customer_id="ANNE", total="9.00")
    commands.land(commands.orders)
    commands.customer("ANNE")
    commands.land(commands.customers)
    return commands


@pytest.mark.usefixtures("commands")
def test_without_landed_objects_commands_report_that() -> None:
    found = run("ls", "shop")
    assert (found.exit_code, found.stdout) == (0, "pipeline shop has no landed objects\n")
    assert lines("ls", "shop", "--json") == []
    assert lines("cat", "shop") == []


@pytest.mark.usefixtures("landed")
def test_ls_prints_a_table() -> None:
    found = run("ls", "shop")
    assert found.exit_code == 0
    [row] = [line for line in found.stdout.splitlines() if FIRST in line]
    cells = [cell.strip() for cell in row.strip("│┃").split("│")]
    assert (cells[0], *cells[2:5], cells[6]) == ("1", "0", "0 to 1", "2", FIRST)


@pytest.mark.usefixtures("landed")
def test_ls_prints_json_lines() -> None:
    found = lines("ls", "shop", "--json")
    assert [(row["manifest"], row["first"], row["last"], row["records"], row["partition"]) for row in found] == [
        (1, 0, 1, 2, 0),
        (2, 2, 2, 1, 0),
        (1, 0, 0, 1, 0),
    ]
    assert [row["key"] for row in found][:2] == [FIRST, SECOND]
    assert all(row["bytes"] > 0 and row["committed_at"] for row in found)


def test_ls_omits_objects_that_no_manifest_lists(landed: Shop) -> None:
    landed.bucket.write(FIRST.replace("000+", "009+"), b"{}\n")
    assert len(lines("ls", "shop", "--json")) == 3


@pytest.mark.usefixtures("landed")
def test_cat_prints_all_records_in_order() -> None:
    found = lines("cat", "shop")
    assert [record.get("order_id") for record in found] == [1, 2, 1, None]
    assert found[0]["total"] == "1.50"


@pytest.mark.usefixtures("landed")
def test_cat_prints_the_bytes_of_the_records() -> None:
    assert run("cat", "shop", SECOND).stdout.startswith('{"order_id": 1, "customer_id": "ANNE", "total": "9.00"')


@pytest.mark.usefixtures("landed")
@pytest.mark.parametrize(
    ("where", "count"),
    [
        (["order_id=1"], 2),
        (["order_id=1", "total=9.00"], 1),
        (["customer_id=BERT"], 1),
        (["__deleted=false"], 4),
        (["order_id=1", "order_id=2"], 0),
        (["order_id="], 0),
        (["nothing=None"], 0),
        (["country=PL"], 1),
    ],
)
def test_cat_where_filters_records(where: list[str], count: int) -> None:
    options = [option for condition in where for option in ("--where", condition)]
    assert len(lines("cat", "shop", *options)) == count


def test_cat_where_compares_json_values(commands: Shop) -> None:
    for value in (b'{"a": null}', b'{"a": true}', b'{"a": 1.5}', b'{"a": "x=y"}', b"[1]", b"not JSON"):
        commands.kafka.send(commands.orders.topic, value)
    commands.land(commands.orders)
    for text, expected in (("null", None), ("true", True), ("1.5", 1.5), ("x=y", "x=y")):
        assert lines("cat", "shop", "--where", f"a={text}") == [{"a": expected}]
    assert run("cat", "shop").stdout.splitlines()[-2:] == ["[1]", "not JSON"]
    assert lines("cat", "shop", "--where", "a=1") == [], "true is not 1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('["é"]', '["\\u00e9"]'),
        ('{"b":1}', '{ "b": 1 }'),
        ("1.50", "1.5"),
        ("12345678901234567.89", "12345678901234567.89"),
    ],
)
def test_cat_where_compares_values_not_their_spelling(commands: Shop, value: str, text: str) -> None:
    commands.kafka.send(commands.orders.topic, f'{{"a": {value}}}'.encode())
    commands.kafka.send(commands.orders.topic, b'{"a": 12345678901234567.88}')
    commands.land(commands.orders)
    assert run("cat", "shop", "--where", f"a={text}").stdout == f'{{"a": {value}}}\n'


@pytest.mark.usefixtures("landed")
def test_cat_limit_limits_the_output() -> None:
    assert len(lines("cat", "shop", "--limit", "2")) == 2
    assert len(lines("cat", "shop", "--limit", "1", "--where", "order_id=1")) == 1
    assert len(lines("cat", "shop", "--limit", "0")) == 4
    assert run("cat", "shop", "--limit", "-1").exit_code == 2


@pytest.mark.usefixtures("landed")
@pytest.mark.parametrize("condition", ["order_id", "=1", ""])
def test_an_invalid_condition_is_rejected(condition: str) -> None:
    found = run("cat", "shop", "--where", condition)
    assert found.exit_code == 2
    assert "COLUMN=VALUE" in found.stderr


@pytest.mark.usefixtures("landed")
def test_cat_rejects_an_object_that_no_manifest_lists() -> None:
    found = run("cat", "shop", "raw/shop/nothing.json")
    assert isinstance(found.exception, ContractError)
    assert "Cannot print raw/shop/nothing.json: no manifest of pipeline shop lists it." in found.exception.user_message


def test_cat_does_not_print_a_changed_object(landed: Shop) -> None:
    landed.bucket.write(FIRST, b'{"order_id": 666}\n')
    found = run("cat", "shop", FIRST)
    assert isinstance(found.exception, ContractError)
    assert found.stdout == ""


@pytest.mark.usefixtures("commands")
def test_an_unknown_pipeline_is_rejected() -> None:
    found = run("ls", "other")
    assert isinstance(found.exception, ContractError)
    assert found.exception.user_message == "Cannot load pipeline 'other': it does not exist. Existing pipelines: shop."
