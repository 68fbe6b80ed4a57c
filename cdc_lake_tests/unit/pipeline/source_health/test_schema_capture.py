"""Looks at the source's catalog: what is captured, what a change needs to be told, and what is refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lake.contract.errors import ContractError, SchemaChangeError, UnsupportedTypeError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.pipeline.checks import replica_identity
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.source_health import schema_capture
from cdc_lake.pipeline.source_health.schema_capture import Look
from cdc_lake_tests.fake_pipeline import World
from resources.postgres.table_columns import ColumnInfo, Storage

ORDERS = ("sales", "orders")
MORE = ColumnInfo("more", "integer", "integer", True, 9, None, None, None, "base", False)


def look(shop: World, **changes: object) -> Look:
    """Look at the orders, of which the catalog says something else than before."""
    shop.postgres.tells(*ORDERS, **changes)
    return schema_capture.look(shop.orders, shop.postgres, shop.bucket)


def columns(shop: World, *more: ColumnInfo) -> tuple[ColumnInfo, ...]:
    """The orders' columns and more."""
    return (*shop.postgres.columns(*ORDERS), *more)


def test_nothing_new(shop: World) -> None:
    assert look(shop) == Look(captured_schema.latest(shop.bucket, "shop", "sales.orders"), added=False, told=())


def test_a_table_whose_rows_are_hidden_is_refused(shop: World) -> None:
    with pytest.raises(ContractError, match=r"row-level security hides rows of table sales\.orders from user"):
        look(shop, row_security=True)


def test_a_key_that_was_made_deferrable_is_refused_with_the_next_apply(shop: World) -> None:
    with pytest.raises(ContractError, match=r"the primary key of table sales\.orders is DEFERRABLE"):
        look(shop, deferrable=True)
    shop.order(1)
    shop.land(shop.orders)
    with pytest.raises(ContractError, match="make it NOT DEFERRABLE"):
        land_and_apply.apply(
            shop.orders, shop.postgres, shop.orders.upsert_spec(S3Location("shop"), "test"), lambda _, spec: spec
        )


def test_a_partition_column_that_the_table_has_not_got_is_refused(shop: World) -> None:
    """Renamed at the source, it would read as empty in every later row."""
    table = replace(shop.orders, spec=shop.orders.spec.model_copy(update={"partition_by": ["region"]}))
    told = r"sales\.orders has no column region, by which the YAML of shop partitions .* `cdc-lake reset shop`"
    with pytest.raises(ContractError, match=told):
        schema_capture.look(table, shop.postgres, shop.bucket)


def test_a_default_is_kept_with_the_column(shop: World) -> None:
    found = look(shop, columns=columns(shop, replace(MORE, missing="5")), missing={"more": "5"})
    assert found.told == ["more integer added (older rows show 5)"]
    assert found.schema.columns[-1] == captured_schema.Column(name="more", type="integer", attnum=9, missing="5")
    # Rewritten for another reason, the table has forgotten; the version has not.
    again = look(shop, columns=columns(shop, MORE), storage=Storage(1, 77))
    assert (again.added, again.schema) == (False, found.schema)


def test_domains_and_enums_are_captured_as_what_they_are(shop: World) -> None:
    mood = replace(MORE, name="mood", type_name="feeling", resolved_type="sales.mood", element_kind="enum")
    price = replace(MORE, type_name="sales.price", resolved_type="numeric(6,2)", position=10)
    found = look(shop, columns=columns(shop, mood, price)).schema
    assert [(each.type, each.lake_type) for each in found.columns[-2:]] == [
        ("sales.mood", "string"),
        ("numeric(6,2)", "decimal(6,2)"),
    ]


def test_a_default_that_only_events_could_tell_needs_a_resnapshot(shop: World) -> None:
    missing = replace(MORE, type_name="interval", base_type="interval", missing="1 day")
    with pytest.raises(SchemaChangeError, match="default of the new column more interval can't be told without"):
        look(shop, columns=columns(shop, missing))


@pytest.mark.parametrize(("filenode", "filled", "refused"), [(1, True, False), (77, False, False), (77, True, True)])
def test_a_column_that_was_filled_by_a_rewrite_needs_a_resnapshot(
    shop: World, filenode: int, filled: bool, refused: bool
) -> None:
    if filled:
        shop.postgres.fill("more")
    changes = {"columns": columns(shop, MORE), "storage": Storage(1, filenode)}
    if not refused:
        assert look(shop, **changes).told == ["more integer added (older rows show NULL)"]
        return
    with pytest.raises(SchemaChangeError, match=r"more was filled in a rewritten table.*`cdc-lake resnapshot shop`"):
        look(shop, **changes)
    assert schema_capture.look(shop.orders, shop.postgres, shop.bucket, epoch=1).added


def test_another_key_than_the_yamls(shop: World) -> None:
    with pytest.raises(
        ContractError, match=r"primary key \(customer_id\), but the YAML of shop says key: \[order_id\]"
    ):
        look(shop, key=("customer_id",))


@pytest.mark.parametrize("virtual", [False, True])
def test_generated_columns_that_are_not_published(shop: World, virtual: bool) -> None:
    computed = replace(MORE, generated=True, virtual=virtual)
    with pytest.raises(UnsupportedTypeError, match=r"column more of sales\.orders is generated, and publication"):
        look(shop, columns=columns(shop, computed))


def test_a_type_that_cannot_be_held(shop: World) -> None:
    shape = replace(MORE, type_name="polygon", base_type="polygon")
    with pytest.raises(UnsupportedTypeError, match="column more has PostgreSQL type polygon"):
        look(shop, columns=columns(shop, shape))


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"storage": Storage(1, None)}, "none yet"),
        ({"storage": Storage(1, None), "children": ("sales.orders_2026",)}, "sales.orders_2026"),
        ({"children": ("sales.old_orders",)}, "sales.old_orders"),
    ],
    ids=["partitioned and empty", "partitioned", "inherited"],
)
def test_a_table_whose_rows_stand_in_others(shop: World, said: dict[str, object], named: str) -> None:
    with pytest.raises(ContractError, match=rf"rows of table sales\.orders stand in other tables \({named}\)"):
        look(shop, **said)


def test_days_before_the_year_one(shop: World) -> None:
    schema_capture.require_tellable(shop.orders, shop.postgres)
    day = replace(MORE, type_name="date", base_type="date")
    shop.postgres.has(*ORDERS, columns(shop, day), ("order_id",))
    schema_capture.require_tellable(shop.orders, shop.postgres)
    shop.postgres.fill("more")
    with pytest.raises(ContractError, match=r"sales\.orders has days before the year 1, .* in more: "):
        schema_capture.require_tellable(shop.orders, shop.postgres)


def test_the_replica_identity(shop: World) -> None:
    (check,) = replica_identity.light(shop.orders)
    assert not check.find(postgres=shop.postgres).passed
    shop.postgres.set_replica_identity(*ORDERS, "full")
    assert check.find(postgres=shop.postgres).passed
