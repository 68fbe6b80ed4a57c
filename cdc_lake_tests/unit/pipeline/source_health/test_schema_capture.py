"""Schema capture: what is stored, which changes need a resnapshot, and which tables are rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_lake.contract.errors import ContractError, SchemaChangeError, UnsupportedTypeError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.pipeline.checks import replica_identity
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import schema_capture
from cdc_lake.pipeline.source_health.omitted_columns import NULL_REPLACED
from cdc_lake.pipeline.source_health.schema_capture import Capture
from cdc_lake.pipeline.spec.landing import LandingFields
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.postgres.table_columns import ColumnInfo, Storage

ORDERS = ("sales", "orders")
MORE = ColumnInfo("more", "integer", "integer", True, 9, None, "base", False)


def capture(shop: Shop, **changes: Any) -> Capture:  # noqa: ANN401 - fields of several types
    """Change the catalog's entry of the orders, and capture their schema."""
    shop.postgres.change_catalog(*ORDERS, **changes)
    return schema_capture.capture(shop.orders, shop.source, shop.bucket)


def columns(shop: Shop, *more: ColumnInfo) -> tuple[ColumnInfo, ...]:
    """Return the orders' columns and these."""
    return (*shop.postgres.columns(*ORDERS), *more)


def test_an_unchanged_schema_is_not_captured_again(shop: Shop) -> None:
    assert capture(shop) == Capture(
        captured_schema.latest(shop.bucket, "shop", "sales.orders"), added=False, changes=()
    )


def test_a_table_with_rows_hidden_by_row_security_is_rejected(shop: Shop) -> None:
    with pytest.raises(ContractError, match=r"capture table sales\.orders: row-level security hides rows from user"):
        capture(shop, row_security=True)


def test_a_key_that_became_deferrable_fails_the_next_apply(shop: Shop) -> None:
    with pytest.raises(ContractError, match=r"table sales\.orders: its primary key is DEFERRABLE"):
        capture(shop, deferrable=True)
    shop.order(1)
    shop.land(shop.orders)
    with pytest.raises(ContractError, match="Make the key NOT DEFERRABLE"):
        land_and_apply.apply(
            shop.orders, shop.source, shop.orders.upsert_spec(S3Location("shop"), "test"), lambda _, spec: spec
        )


def test_an_unknown_partition_column_is_rejected(shop: Shop) -> None:
    """A partition column renamed at the source would be NULL in every later row."""
    table = replace(shop.orders, spec=shop.orders.spec.model_copy(update={"partition_by": ["region"]}))
    message = (
        r"sales\.orders has no captured column region, which partition_by in the YAML of shop .* `cdc-lake reset shop`"
    )
    with pytest.raises(ContractError, match=message):
        schema_capture.capture(table, shop.source, shop.bucket)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("region", r"table sales\.orders has no captured column region, which landing\.partition_by in the YAML"),
        ("total", r"column total has type numeric\(6,2\), which a partition column cannot have\. Name a text, date"),
        ("customer_id", None),
    ],
)
def test_partition_columns_of_raw_objects_are_captured_columns_with_one_text(
    shop: Shop, column: str, reason: str | None
) -> None:
    landing = LandingFields(partition_by=[column])
    table = replace(shop.orders, spec=shop.orders.spec.model_copy(update={"landing": landing}))
    if reason is None:
        schema_capture.capture(table, shop.source, shop.bucket)
        return
    with pytest.raises(ContractError, match=rf"raw objects of table sales\.orders: {reason}"):
        schema_capture.capture(table, shop.source, shop.bucket)


def test_a_partition_column_of_the_lake_table_has_one_text(shop: Shop) -> None:
    table = replace(shop.orders, spec=shop.orders.spec.model_copy(update={"partition_by": ["total"]}))
    message = r"partition the lake table orders: column total has type numeric\(6,2\), which .* column in partition_by"
    with pytest.raises(ContractError, match=message):
        schema_capture.capture(table, shop.source, shop.bucket)


def test_a_default_is_captured_with_the_column(shop: Shop) -> None:
    found = capture(shop, columns=columns(shop, replace(MORE, missing="5")), missing={"more": "5"})
    assert found.changes == ["more integer added (older rows show 5)"]
    assert found.schema.columns[-1] == captured_schema.Column(name="more", type="integer", attnum=9, missing="5")
    # A rewrite removes the default from PostgreSQL's catalog; the captured version still has it.
    after_rewrite = capture(shop, columns=columns(shop, MORE), storage=Storage(1, 77))
    assert (after_rewrite.added, after_rewrite.schema) == (False, found.schema)


def test_domains_are_captured_as_base_types_and_enums_as_strings(shop: Shop) -> None:
    mood = replace(MORE, name="mood", type_name="feeling", resolved_type="sales.mood", element_kind="enum")
    price = replace(MORE, type_name="sales.price", resolved_type="numeric(6,2)", position=10)
    found = capture(shop, columns=columns(shop, mood, price)).schema
    assert [(each.type, each.lake_type) for each in found.columns[-2:]] == [
        ("sales.mood", "string"),
        ("numeric(6,2)", "decimal(6,2)"),
    ]


def test_a_default_that_cannot_be_converted_needs_a_resnapshot(shop: Shop) -> None:
    missing = replace(MORE, type_name="interval", base_type="interval", missing="1 day")
    with pytest.raises(SchemaChangeError, match="default of the new column more interval cannot be reproduced"):
        capture(shop, columns=columns(shop, missing))


@pytest.mark.parametrize(("filenode", "filled", "refused"), [(1, True, False), (77, False, False), (77, True, True)])
def test_a_column_filled_by_a_rewrite_needs_a_resnapshot(
    shop: Shop, filenode: int, filled: bool, refused: bool
) -> None:
    if filled:
        shop.postgres.fill("more")
    changes = {"columns": columns(shop, MORE), "storage": Storage(1, filenode)}
    if not refused:
        assert capture(shop, **changes).changes == ["more integer added (older rows show NULL)"]
        return
    with pytest.raises(SchemaChangeError, match=r"more was filled in a rewritten table.*`cdc-lake resnapshot shop`"):
        capture(shop, **changes)
    assert schema_capture.capture(shop.orders, shop.source, shop.bucket, epoch=1).added


def test_a_key_other_than_the_yamls_is_rejected(shop: Shop) -> None:
    with pytest.raises(ContractError, match=r"primary key \(customer_id\), but the YAML of shop has key: \[order_id\]"):
        capture(shop, key=("customer_id",))


VIRTUAL = "virtual generated, never published"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"generated": True, "virtual": True}, VIRTUAL),
        ({"generated": True}, "generated, and not published"),
        ({"type_name": "polygon", "base_type": "polygon"}, "the lake has no type for PostgreSQL's polygon"),
        ({"resolved_type": "numeric(6,2)[]", "kind": "array"}, "the lake has no type for PostgreSQL's numeric(6,2)[]"),
        ({"name": "T x"}, "its name is not valid in the lake's formats (letters, digits and '_', not starting with a "),
        ({"name": "__op"}, "its name begins with '__' or '_hoodie_'"),
    ],
    ids=["virtual", "stored", "type", "array", "name", "reserved name"],
)
def test_a_column_that_cannot_be_captured_is_omitted(shop: Shop, changes: dict[str, Any], reason: str) -> None:
    odd = replace(MORE, **changes)
    found = capture(shop, columns=columns(shop, odd))
    assert [column.name for column in found.schema.columns] == ["order_id", "customer_id", "total"]
    (omitted,) = found.schema.omitted
    assert (omitted.name, omitted.attnum, omitted.excluded) == (odd.name, 9, False)
    assert (omitted.streamed, found.schema.allows_full_replica_identity) == (not odd.generated, not odd.generated)
    assert omitted.reason.startswith(reason)
    assert found.changes == [f"{odd.name} omitted ({omitted.reason})"]


def test_a_generated_or_omitted_column_prevents_an_incremental_snapshot(shop: Shop) -> None:
    schema_capture.require_incremental(shop.orders, shop.source)
    with pytest.raises(ContractError, match="its column total is generated or omitted"):
        schema_capture.require_incremental(excluding(shop, "total"), shop.source)
    virtual = replace(MORE, name="v", generated=True, virtual=True)
    shop.postgres.has(*ORDERS, columns(shop, virtual), ("order_id",))
    with pytest.raises(ContractError, match="its column v is generated or omitted"):
        schema_capture.require_incremental(shop.orders, shop.source)


def test_a_published_generated_column_is_captured(shop: Shop) -> None:
    computed, virtual = (
        replace(MORE, generated=True),
        replace(MORE, name="v", position=10, generated=True, virtual=True),
    )
    shop.postgres.has(*ORDERS, columns(shop, computed, virtual), ("order_id",))
    shop.postgres.publish_generated()
    found = schema_capture.capture(shop.orders, shop.source, shop.bucket)
    assert (found.schema.columns[-1].name, [each.name for each in found.schema.omitted]) == ("more", ["v"])


def excluding(shop: Shop, *names: str) -> PipelineTable:
    """Return the orders with exclude_columns."""
    return replace(shop.orders, spec=shop.orders.spec.model_copy(update={"exclude_columns": list(names)}))


def test_an_excluded_column_is_omitted(shop: Shop) -> None:
    found = schema_capture.capture(excluding(shop, "customer_id"), shop.source, shop.bucket)
    assert found.changes == ["customer_id omitted (kept as history)"]
    assert [column.name for column in found.schema.columns] == ["order_id", "total"]
    (omitted,) = found.schema.omitted
    assert (omitted.name, omitted.reason, omitted.excluded) == ("customer_id", "exclude_columns", True)
    with pytest.raises(SchemaChangeError, match="column customer_id was omitted until now"):
        schema_capture.capture(shop.orders, shop.source, shop.bucket)


def test_an_excluded_column_that_the_table_lacks_is_rejected(shop: Shop) -> None:
    with pytest.raises(
        ContractError, match=r"sales\.orders: it has no column Total, which exclude_columns in the YAML"
    ):
        schema_capture.capture(excluding(shop, "total", "Total"), shop.source, shop.bucket)


def test_a_key_that_cannot_be_captured_is_rejected(shop: Shop) -> None:
    key = replace(shop.postgres.columns(*ORDERS)[0], type_name="pg_lsn", base_type="pg_lsn")
    with pytest.raises(
        UnsupportedTypeError, match=r"orders: column order_id of its primary key .* PostgreSQL's pg_lsn\)"
    ):
        capture(shop, columns=(key, *shop.postgres.columns(*ORDERS)[1:]))


def test_a_partition_column_that_cannot_be_captured_is_rejected(shop: Shop) -> None:
    table = replace(shop.orders, spec=shop.orders.spec.model_copy(update={"partition_by": ["more"]}))
    shop.postgres.change_catalog(*ORDERS, columns=columns(shop, replace(MORE, generated=True, virtual=True)))
    with pytest.raises(ContractError, match=r"table sales\.orders has no captured column more, which partition_by"):
        schema_capture.capture(table, shop.source, shop.bucket)


@pytest.mark.parametrize(("registry", "omitted"), [("apicurio", [("more", NULL_REPLACED)]), ("confluent", [])])
def test_a_nullable_column_with_a_default_is_omitted_for_apicurio(
    shop: Shop, registry: str, omitted: list[tuple[str, str]]
) -> None:
    pipeline = shop.pipeline
    stream = pipeline.spec.stream.model_copy(update={"format": "avro", "registry": registry})
    avro = replace(pipeline, spec=pipeline.spec.model_copy(update={"stream": stream}))
    shop.postgres.change_catalog(*ORDERS, columns=columns(shop, replace(MORE, default="3")))
    found = schema_capture.capture(replace(shop.orders, pipeline=avro), shop.source, shop.bucket).schema
    assert [(each.name, each.reason) for each in found.omitted] == omitted


@pytest.mark.parametrize(
    ("catalog_changes", "tables_in_message"),
    [
        ({"storage": Storage(1, None)}, "none yet"),
        ({"storage": Storage(1, None), "children": ("sales.orders_2026",)}, "sales.orders_2026"),
        ({"children": ("sales.old_orders",)}, "sales.old_orders"),
    ],
    ids=["partitioned and empty", "partitioned", "inherited"],
)
def test_partitioned_and_inherited_tables_are_rejected(
    shop: Shop, catalog_changes: dict[str, object], tables_in_message: str
) -> None:
    with pytest.raises(
        ContractError, match=rf"sales\.orders: its rows are stored in .*child tables \({tables_in_message}\)"
    ):
        capture(shop, **catalog_changes)


def test_dates_before_the_year_one_are_rejected(shop: Shop) -> None:
    schema_capture.require_snapshot_safe_dates(shop.orders, shop.source)
    day = replace(MORE, type_name="date", base_type="date")
    shop.postgres.has(*ORDERS, columns(shop, day), ("order_id",))
    schema_capture.require_snapshot_safe_dates(shop.orders, shop.source)
    shop.postgres.fill("more")
    with pytest.raises(ContractError, match=r"sales\.orders: it has dates before the year 1, .* in more, and"):
        schema_capture.require_snapshot_safe_dates(shop.orders, shop.source)
    schema_capture.require_snapshot_safe_dates(excluding(shop, "more"), shop.source)


def test_replica_identity_full_is_required(shop: Shop) -> None:
    (check,) = replica_identity.light(shop.orders)
    assert not check.evaluate(postgres=shop.postgres).passed
    shop.postgres.set_replica_identity(*ORDERS, "full")
    assert check.evaluate(postgres=shop.postgres).passed


def test_an_unpublished_generated_column_requires_the_replica_identity_default(shop: Shop) -> None:
    """PostgreSQL 18 rejects UPDATE and DELETE otherwise, also if the YAML excludes the column."""
    (check,) = replica_identity.light(shop.orders)
    for virtual in (False, True):
        shop.postgres.has(*ORDERS, columns(shop, replace(MORE, generated=True, virtual=virtual)), ("order_id",))
        assert check.evaluate(postgres=shop.postgres).passed
        shop.postgres.set_replica_identity(*ORDERS, "full")
        assert not check.evaluate(postgres=shop.postgres).passed
        shop.postgres.set_replica_identity(*ORDERS, "default")
        found = schema_capture.capture(excluding(shop, "more"), shop.source, shop.bucket).schema
        assert (found.omitted[0].excluded, found.allows_full_replica_identity) == (True, False)
        shop.postgres.has(*ORDERS, shop.postgres.columns(*ORDERS)[:-1], ("order_id",))
    shop.postgres.has(*ORDERS, columns(shop, replace(MORE, generated=True)), ("order_id",))
    shop.postgres.publish_generated()
    assert not check.evaluate(postgres=shop.postgres).passed
