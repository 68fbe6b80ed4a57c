"""Casts, record keys, and transforms at landing: the connector's settings, and the columns of each stage."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.sent_columns import sent_columns
from cdc_lake.contract.schema.transforms import RecordKey, TableTransforms
from cdc_lake.jobs.poll import record_sql
from cdc_lake.pipeline.connector_config import connector_config
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import schema_capture, transformed_columns
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from cdc_lake_tests.unit.pipeline.spec.shop_transforms import CAST, EXTRACT, INSERT, KEY, NOTE, RENAME, transforming
from resources.postgres.table_columns import ColumnInfo

AT_LANDING = {"at": "landing"}
COUNT = replace(NOTE, name="count", type_name="integer", base_type="integer")
ORDERS = ("sales", "orders")


def with_count(
    shop: Shop, *given: dict[str, Any], column: ColumnInfo = COUNT, deployment: str = "local"
) -> PipelineTable:
    """Return the orders with these transforms and another column."""
    pipeline = transforming(shop, *given, deployment=deployment)
    shop.postgres.has(*ORDERS, (*shop.postgres.columns(*ORDERS)[:4], column), ("order_id",))
    return pipeline.tables[0]


def captured(shop: Shop, *given: dict[str, Any]) -> tuple[PipelineTable, TableSchema]:
    """Return the orders with these transforms, and their captured schema."""
    table = with_count(shop, *given)
    return table, schema_capture.capture(table, shop.source, shop.bucket, epoch=1).schema


def settings(shop: Shop, table: PipelineTable) -> dict[str, str]:
    """Return the settings of the connector's transforms, without those that all of them have."""
    config = connector_config(table.pipeline, shop.source, shop.deployment)
    found = {name: value for name, value in config.items() if name.startswith("transforms.table")}
    return {
        name: value for name, value in found.items() if not name.endswith((".predicate", ".replace.null.with.default"))
    }


def test_the_connector_casts_renames_and_sets_the_key_in_this_order(shop: Shop) -> None:
    table = with_count(shop, KEY | {"fields": ["total", "customer_id"]}, RENAME, CAST | {"spec": {"count": "string"}})
    package = "org.apache.kafka.connect.transforms"
    assert settings(shop, table) == {
        "transforms.table0.type": f"{package}.Cast$Value",
        "transforms.table0.spec": "count:string",
        "transforms.table1.type": f"{package}.ReplaceField$Value",
        "transforms.table1.renames": "total:amount",
        "transforms.table2.type": f"{package}.ValueToKey",
        "transforms.table2.fields": "amount,customer_id",
    }


@pytest.mark.parametrize(
    ("given", "kinds", "field"),
    [
        ([EXTRACT], ["ExtractField$Key"], "order_id"),
        ([EXTRACT | {"field": "customer_id"}, KEY], ["ValueToKey", "ExtractField$Key"], "customer_id"),
    ],
)
def test_the_key_can_be_one_value(shop: Shop, given: list[dict[str, Any]], kinds: list[str], field: str) -> None:
    found = settings(shop, with_count(shop, *given))
    assert [value.rpartition(".")[2] for name, value in found.items() if name.endswith(".type")] == kinds
    assert next(value for name, value in found.items() if name.endswith(".field")) == field


def test_the_connector_does_not_apply_what_landing_applies(shop: Shop) -> None:
    given = [RENAME | AT_LANDING, INSERT | AT_LANDING, CAST | AT_LANDING | {"spec": {"count": "float64"}}]
    table = with_count(shop, *given)
    assert settings(shop, table) == {}
    assert table.landing_transforms == TableTransforms(
        {},
        {"total": "amount"},
        {"environment": "test", "message_topic": "shop.sales.orders"},
        {"count": "float64"},
    )
    assert with_count(shop, RENAME, EXTRACT).landing_transforms is None


def test_a_worker_that_would_replace_null_by_a_default_is_accepted_for_transforms_at_landing(shop: Shop) -> None:
    nullable = replace(COUNT, default="7")
    for given, wrong in ((CAST | {"spec": {"count": "string"}}, True), (RENAME, True), (RENAME | AT_LANDING, False)):
        table = with_count(shop, given, column=nullable, deployment="aws")
        if wrong:
            with pytest.raises(ContractError, match=r"column count has a default.*or apply Cast, .* at: landing"):
                connector_config(table.pipeline, shop.source, shop.deployment)
        else:
            connector_config(table.pipeline, shop.source, shop.deployment)


def test_the_captured_schema_is_the_same_wherever_a_transform_is_applied(shop: Shop) -> None:
    given = [RENAME, INSERT, CAST | {"spec": {"count": "string"}}]
    at_source = captured(shop, *given)[1]
    table, at_landing = captured(shop, *(each | AT_LANDING for each in given))
    assert at_landing.columns == at_source.columns
    assert [column.name for column in at_source.columns] == [
        "order_id",
        "customer_id",
        "amount",
        "note",
        "count",
        "environment",
        "message_topic",
    ]
    count = at_source.columns[4]
    assert (count.type, count.lake_type, count.uncast) == ("text", "string", "integer")
    assert "count cast from integer to text" in transformed_columns.describe(at_source)
    assert TableSchema.model_validate_json(at_source.model_dump_json()) == at_source
    sent = [each.sent for each in sent_columns(at_landing.columns, table.landing_transforms)]
    assert [(column.name, column.type, column.uncast, column.source) for column in sent] == [
        ("order_id", "integer", None, None),
        ("customer_id", "text", None, None),
        ("total", "numeric(6,2)", None, None),
        ("note", "text", None, None),
        ("count", "integer", None, None),
    ], "Kafka has the columns of the source"
    assert [each.sent for each in sent_columns(at_source.columns, None)] == list(at_source.columns)


def test_a_column_renamed_at_the_source_can_be_cast_at_landing(shop: Shop) -> None:
    table, schema = captured(
        shop, RENAME | {"renames": {"count": "number"}}, CAST | AT_LANDING | {"spec": {"count": "string"}}
    )
    assert table.landing_transforms == TableTransforms(cast={"number": "string"})
    sent = {each.sent.name: each.sent.type for each in sent_columns(schema.columns, table.landing_transforms)}
    assert sent["number"] == "integer"
    assert {column.name: column.type for column in schema.columns}["number"] == "text"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (CAST | {"spec": {"note": "string"}}, "column note is of type text. Only columns of bigint, boolean, integer,"),
        (
            CAST | {"spec": {"count": "int32"}},
            "count is of type integer. Only columns of smallint can be cast to",
        ),
        (CAST | {"spec": {"Count": "string"}}, "it has no captured column Count"),
        (KEY | {"fields": ["counts"]}, "it has no captured column counts"),
    ],
)
def test_a_cast_or_key_that_the_table_does_not_suit_is_rejected(shop: Shop, given: dict[str, Any], reason: str) -> None:
    table = with_count(shop, given)
    with pytest.raises(ContractError, match=re.escape(reason)):
        schema_capture.capture(table, shop.source, shop.bucket)
    with pytest.raises(ContractError, match=re.escape(reason)):
        connector_config(table.pipeline, shop.source, shop.deployment)


def test_a_poll_builds_keys_and_casts_like_the_connector(shop: Shop) -> None:
    _, schema = captured(shop, CAST | {"spec": {"count": "string"}})
    text = record_sql.value_sql(schema.columns, {})
    assert 'to_json((q."count"::text))' in text
    one, whole = RecordKey(("order_id",), alone=True), RecordKey(("order_id",))
    alone = record_sql.key_sql(one, schema.columns)
    assert alone == "coalesce((to_json(q.\"order_id\"))::text, 'null')"
    assert record_sql.key_sql(whole, schema.columns) == "'{' || '\"order_id\":' || " + alone + " || '}'"


def test_transforms_at_landing_are_rejected_with_a_sink(tmp_path: Any) -> None:  # noqa: ANN401 - a path
    write_shop(
        tmp_path,
        YAML.replace("flush_seconds: 30", "sink: { layout: lenses }")
        + "  transforms: [{ type: InsertField, table: orders, at: landing, static: { a: b } }]\n",
    )
    reason = "InsertField: use at: source, because the sink connector writes records as they are in Kafka"
    with pytest.raises(ContractError, match=re.escape(reason)):
        load("shop", tmp_path)
