"""Transforms: what the YAML may say, the connector's settings, and the captured schema."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from cdc_lake.contract.errors import ContractError, SchemaChangeError
from cdc_lake.contract.schema import record_versions
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.transforms import Masking
from cdc_lake.pipeline.connector_config import connector_config
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.source_health import schema_capture, transformed_columns
from cdc_lake.pipeline.spec.transform_rules import find_fault
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.spec.shop_transforms import (
    CAST,
    EXTRACT,
    INSERT,
    KEY,
    KEYS,
    NOTE,
    ORDERS,
    RENAME,
    TABLES,
    transforming,
    transforms,
)
from resources.errors import ResourceError
from resources.postgres.resource import Postgres
from resources.postgres.table_columns import ColumnInfo

SALT = "sixteen-letters-0"
HASH = {"type": "hash", "table": "orders", "columns": ["customer_id"]}
MASK = {"type": "MaskField", "table": "orders", "columns": ["note"], "length": 3}
DOMAIN = replace(NOTE, type_name="email_address", resolved_type="text")


def salted(shop: Shop, salt: str = SALT) -> SourcePostgres:
    source = shop.postgres.model_copy(update={"hash_salt": salt})
    return SourcePostgres(source)


def capture(shop: Shop, *given: dict[str, Any], epoch: int = 0) -> schema_capture.Capture:
    pipeline = transforming(shop, *given)
    return schema_capture.capture(pipeline.tables[0], shop.source, shop.bucket, epoch=epoch)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (HASH | {"at": "landing"}, "values are hidden before they are in Kafka and in dead letters; write at: source"),
        (MASK | {"at": "landing"}, "values are hidden before they are in Kafka"),
        (HASH | {"at": "lake"}, "'source' or 'landing'"),
        (KEY | {"at": "landing"}, "raw objects contain no keys; write at: source"),
        (EXTRACT | {"at": "landing"}, "raw objects contain no keys"),
        (KEY | {"fields": []}, "at least 1 item"),
        (CAST | {"spec": {}}, "at least 1 item"),
        (CAST | {"spec": {"order_id": "int8"}}, "'int32', 'int64', 'float64' or 'string'"),
        (
            {"type": "ReplaceField", "exclude": ["note"], "at": "landing"},
            "not allowed with at: landing, because an excluded column is not captured at all",
        ),
        (HASH | {"columns": []}, "at least 1 item"),
        (HASH | {"algorithm": "MD5"}, "'SHA-256', 'SHA-384' or 'SHA-512'"),
        (MASK | {"length": 0}, "greater than or equal to 1"),
        ({"type": "InsertField"}, "name a column in static or topic"),
        (INSERT | {"static": {"Environment": "test"}}, "use lower-case letters"),
        (INSERT | {"static": {"__db": "test"}}, "the lake adds columns that begin with"),
        (INSERT | {"static": {"a": "${file:/secrets:password}"}}, "which Connect would replace"),
        (INSERT | {"static": {"a": " b"}}, "without blanks at its ends"),
        ({"type": "ReplaceField", "table": "orders"}, "name a column in renames or exclude"),
        ({"type": "Filter"}, "does not match any of the expected tags"),
    ],
)
def test_a_transform_that_is_not_valid_is_rejected(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        transforms(given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([HASH | {"table": "invoices"}], "there is no table invoices in tables; name one of orders, customers"),
        ([HASH | {"columns": ["order_id"]}], "orders: order_id is in key, partition_by or poll"),
        ([MASK | {"table": None, "columns": ["country"]}], "customers: country is in key, partition_by or poll"),
        ([RENAME | {"exclude": ["total"]}], "orders: total is excluded, and no other transform can apply"),
        ([HASH, MASK | {"columns": ["customer_id"]}], "orders: customer_id is masked or hashed more than once"),
        ([INSERT, RENAME | {"renames": {"total": "environment"}}], "orders: environment is created more than once"),
        ([CAST | {"spec": {"order_id": "string"}}], "orders: order_id is in key, partition_by or poll"),
        ([CAST, CAST], "orders: amount is cast more than once"),
        ([KEY, KEY], "orders: its records have one key; keep one ValueToKey and one ExtractField$Key"),
        ([EXTRACT, KEY], "orders: order_id is not in the records' key (customer_id)"),
        ([EXTRACT | {"table": None}], "customers: order_id is not in the records' key (customer_id)"),
        ([KEY, HASH], "orders: customer_id is hashed, masked or excluded, and cannot be in the records' key"),
        ([HASH, MASK, RENAME, INSERT, CAST, EXTRACT], None),
        ([RENAME | {"at": "landing"}, INSERT | {"at": "landing"}, KEY, EXTRACT | {"field": "customer_id"}], None),
    ],
)
def test_transforms_must_suit_the_tables(given: list[dict[str, Any]], reason: str | None) -> None:
    found = find_fault(transforms(*given), TABLES, KEYS)
    assert (found or "").startswith(reason or "")
    assert (found is None) == (reason is None)


def test_the_connector_gets_the_settings_of_the_transforms(shop: Shop) -> None:
    plain = connector_config(transforming(shop), shop.source, shop.deployment)
    pipeline = transforming(shop, HASH, MASK, RENAME | {"exclude": ["note"], "renames": {"total": "amount"}}, INSERT)
    with pytest.raises(ContractError, match="no captured column note"):
        connector_config(pipeline, salted(shop), shop.deployment)
    config = connector_config(transforming(shop, HASH, MASK, RENAME, INSERT), salted(shop), shop.deployment)
    null, topics = {"replace.null.with.default": "false"}, r"shop\.sales\.orders"
    both = rf"{topics}|shop\.sales\.customers"
    expected: dict[str, str] = {
        f"column.mask.hash.v2.SHA-256.with.salt.{SALT}": "sales[.]orders[.](?-i:customer_id)",
        "column.mask.with.3.chars": "sales[.]orders[.](?-i:note)",
        "transforms": "unwrap,table0,table1,table2,table3",
        "predicates": "table0,table1,table2,table3",
    }
    for place, (kind, pattern, settings) in enumerate(
        [
            ("ReplaceField", topics, {"renames": "total:amount"}),
            ("InsertField", both, {"static.field": "environment", "static.value": "test"}),
            ("InsertField", topics, {"static.field": "message_topic", "static.value": "shop.sales.orders"}),
            (
                "InsertField",
                r"shop\.sales\.customers",
                {"static.field": "message_topic", "static.value": "shop.sales.customers"},
            ),
        ]
    ):
        own = {"type": f"org.apache.kafka.connect.transforms.{kind}$Value", "predicate": f"table{place}"}
        expected |= {f"transforms.table{place}.{name}": value for name, value in (own | null | settings).items()}
        matches = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"
        expected |= {f"predicates.table{place}.type": matches, f"predicates.table{place}.pattern": pattern}
    assert {name: value for name, value in config.items() if plain.get(name) != value} == expected


@pytest.mark.parametrize(("salt", "fault"), [("", "is missing"), ("short", "is not valid"), ("a.b" * 9, "not valid")])
def test_a_hash_needs_a_salt(shop: Shop, salt: str, fault: str) -> None:
    with pytest.raises(ResourceError, match=fault) as caught:
        connector_config(transforming(shop, HASH), salted(shop, salt), shop.deployment)
    assert "CDC_LAKE_HASH_SALT" in caught.value.hint
    if salt:
        assert salt not in str(caught.value)
    assert SALT not in repr(Postgres(host="h", user="u", database="d", hash_salt=SALT))


def test_a_worker_that_would_replace_null_by_a_default_is_rejected(shop: Shop) -> None:
    pipeline = transforming(shop, RENAME, deployment="aws")
    shop.postgres.has(*ORDERS, (*shop.postgres.columns(*ORDERS)[:3], replace(NOTE, default="'x'")), ("order_id",))
    with pytest.raises(ContractError, match=r"sales\.orders on MSK Connect: column note has a default"):
        connector_config(pipeline, shop.source, shop.deployment)
    masking = replace(pipeline, spec=pipeline.spec.model_copy(update={"transforms": transforms(MASK)}))
    assert "predicates" not in connector_config(masking, shop.source, shop.deployment)


def test_the_captured_schema_has_the_columns_of_the_records(shop: Shop) -> None:
    found = capture(shop, HASH, MASK, RENAME, INSERT, epoch=1).schema
    assert [column.name for column in found.columns] == [
        "order_id",
        "customer_id",
        "amount",
        "note",
        "environment",
        "message_topic",
    ]
    _, customer, amount, note, environment, topic = found.columns
    assert (customer.masked, customer.missing) == (Masking(algorithm="SHA-256"), None)
    assert (amount.source_name, amount.type) == ("total", "numeric(6,2)")
    assert (note.masked, note.missing) == (Masking(asterisks=3), "***")
    assert (environment.inserted, environment.missing, environment.lake_type) == ("test", "test", "string")
    assert topic.inserted == "shop.sales.orders"
    assert transformed_columns.describe(found) == (
        "customer_id hashed (SHA-256), total renamed to amount, note masked, environment inserted, "
        "message_topic inserted"
    )
    assert TableSchema.model_validate_json(found.model_dump_json()) == found


def test_excluding_by_a_transform_is_excluding_by_the_table(shop: Shop) -> None:
    found = capture(shop, {"type": "ReplaceField", "exclude": ["note"], "table": "orders"}).schema
    assert [column.name for column in found.omitted if column.excluded] == ["note"]


@pytest.mark.parametrize(
    ("given", "column", "reason"),
    [
        (HASH | {"columns": ["Customer_id"]}, NOTE, "it has no captured column Customer_id"),
        (HASH | {"columns": ["total"]}, NOTE, r"column total is of type numeric\(6,2\). Only columns of text and"),
        (
            HASH | {"columns": ["note"]},
            replace(NOTE, type_name="email_address", resolved_type="text"),
            "note is of type email_address",
        ),
        (HASH | {"columns": ["note"]}, replace(NOTE, type_name="citext", base_type="citext"), "of type citext"),
        (RENAME | {"renames": {"total": "note"}}, NOTE, "it already has a column note"),
        (INSERT | {"static": {"note": "x"}}, NOTE, "it already has a column note"),
        (HASH, replace(NOTE, generated=True, virtual=True), "customer_id cannot be hashed. An unpublished generated"),
    ],
)
def test_a_transform_that_the_table_does_not_suit_is_rejected(
    shop: Shop, given: dict[str, Any], column: ColumnInfo, reason: str
) -> None:
    pipeline = transforming(shop, given)
    shop.postgres.has(*ORDERS, (*shop.postgres.columns(*ORDERS)[:3], column), ("order_id",))
    with pytest.raises(ContractError, match=rf"transforms of shop to table sales\.orders: .*{reason}"):
        schema_capture.capture(pipeline.tables[0], shop.source, shop.bucket)
    with pytest.raises(ContractError, match=reason):
        connector_config(pipeline, salted(shop), shop.deployment)


def test_columns_are_renamed_and_inserted_while_the_pipeline_runs(shop: Shop) -> None:
    before = capture(shop).schema
    after = capture(shop, RENAME, INSERT)
    assert list(after.changes) == [
        "total renamed to amount",
        "environment text added (older rows show test)",
        "message_topic text added (older rows show shop.sales.orders)",
    ]
    (layout,) = record_versions.record_layouts([before, after.schema])
    fields = {column.name: [field.name for field in column.fields] for column in layout.columns}
    assert fields["amount"] == ["amount", "total"]
    assert not next(column.required for column in layout.columns if column.name == "environment")


@pytest.mark.parametrize(
    ("before", "after", "column"),
    [
        ([], [HASH], "customer_id"),
        ([MASK], [], "note"),
        ([MASK], [MASK | {"length": 4}], "note"),
        ([INSERT], [INSERT | {"static": {"environment": "live"}}], "environment"),
    ],
)
def test_other_values_need_a_resnapshot(
    shop: Shop, before: list[dict[str, Any]], after: list[dict[str, Any]], column: str
) -> None:
    capture(shop, *before)
    with pytest.raises(
        SchemaChangeError, match=rf"values of column {column} change from now on, .*`cdc-lake resnapshot shop`"
    ):
        capture(shop, *after)
    assert capture(shop, *after, epoch=1).added
