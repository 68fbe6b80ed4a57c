"""row_comparison: equal values in different notations, and keys that change during the comparison."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.helpers import row_comparison
from cdc_lake_tests.helpers.row_comparison import Comparison, normal, streamed

BIG = "12345678901234567890123456789012345678"
DAY = datetime(2026, 5, 6, 7, 8, 9, 123456)


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (None, None, "int"),
        (Decimal("1.50"), "1.5", "decimal(6,2)"),
        (Decimal(0), Decimal("0.00"), "decimal(6,2)"),
        (Decimal(BIG), BIG, "decimal(38,0)"),
        (5, "5", "bigint"),
        (True, True, "boolean"),
        (0.1, "0.1", "float"),
        (0.1, 0.10000000149011612, "float"),
        (0.1, "0.1", "double"),
        (float("nan"), float("nan"), "double"),
        (float("nan"), "NaN", "float"),
        (float("-inf"), "-inf", "double"),
        (DAY, DAY.replace(microsecond=123000), "timestamp"),
        (DAY.replace(tzinfo=UTC), DAY, "timestamp"),
        (DAY.replace(tzinfo=timezone(timedelta(hours=2))), DAY - timedelta(hours=2), "timestamp"),
        (time(1, 2, 3, 4), 3723000004, "bigint"),
        (memoryview(b"ab"), b"ab", "binary"),
        (date(2026, 5, 6), date(2026, 5, 6), "date"),
        ("text", "text", "string"),
    ],
)
def test_equal_values_in_different_notations_compare_equal(ours: object, theirs: object, kind: str) -> None:
    assert normal(ours, kind) == normal(theirs, kind)


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (None, 0, "int"),
        (None, "", "string"),
        (Decimal("1.50"), Decimal("1.51"), "decimal(6,2)"),
        (Decimal(BIG), Decimal(BIG) + 1, "decimal(38,0)"),
        (2**53, 2**53 + 1, "bigint"),
        (0.1, 0.1000001, "float"),
        (0.1, 0.10000000149011612, "double"),
        (float("nan"), 0.0, "double"),
        (DAY, DAY + timedelta(milliseconds=1), "timestamp"),
        (b"ab", b"ac", "binary"),
        ("text", "text ", "string"),
        ('{"a": 1}', '{"a":1}', "string"),
        (date(2026, 5, 6), date(2026, 5, 7), "date"),
    ],
)
def test_different_values_compare_unequal(ours: object, theirs: object, kind: str) -> None:
    assert normal(ours, kind) != normal(theirs, kind)


@pytest.mark.parametrize(
    ("in_stream", "column_type", "source"),
    [
        (7, "integer", 7),
        ("ANNE", "text", "ANNE"),
        ("1.5", "numeric(6,2)", Decimal("1.50")),
        (10957, "date", date(2000, 1, 1)),
        (1_000_001, "timestamp without time zone", datetime(1970, 1, 1, 0, 0, 1)),
        (1_001, "timestamp(3) without time zone", datetime(1970, 1, 1, 0, 0, 1, 1000)),
        ("2026-05-06T07:08:09.123456Z", "timestamp with time zone", DAY.replace(tzinfo=UTC)),
        (3723000004, "time without time zone", time(1, 2, 3, 4)),
        (3723004, "time(3) without time zone", time(1, 2, 3, 4000)),
        ("YWI=", "bytea", memoryview(b"ab")),
        (None, "date", None),
    ],
)
def test_a_streamed_key_equals_the_source_key(in_stream: object, column_type: str, source: object) -> None:
    described = Column(name="key", type=column_type)
    assert streamed(in_stream, described) == normal(source, described.lake_type)


def compare(shop: Shop) -> Comparison:
    """Compare the orders of the source with those of the lake."""
    return row_comparison.compare(
        shop.orders,
        shop.postgres,
        shop.kafka,
        shop.connect,
        shop.bucket,
        shop.athena,
        shop.deployment.snapshot_seconds,
    )


def test_a_carried_table_equals_its_source(shop: Shop) -> None:
    shop.order(1)
    shop.order(2)
    shop.delete_order(1)
    shop.carry()
    found = compare(shop)
    assert found.equal
    assert (found.compared, found.changed_since) == (1, 0)


def test_an_empty_table_equals_its_source(shop: Shop) -> None:
    assert compare(shop) == Comparison(0, 0, [], [], {})


def test_keys_changed_since_the_last_apply_are_excluded_and_counted(shop: Shop) -> None:
    for number in (1, 2, 3):
        shop.order(number)
    shop.carry()
    shop.order(1, total="99.00")  # updated
    shop.delete_order(2)
    shop.order(4)  # inserted; all three are not applied yet
    found = compare(shop)
    assert found.equal
    assert (found.compared, found.changed_since) == (1, 3)


def test_a_landed_change_that_is_not_applied_counts_as_changed(shop: Shop) -> None:
    shop.order(1)
    shop.carry()
    shop.order(1, total="99.00")
    shop.land(shop.orders)
    assert compare(shop).changed_since == 1


def test_a_change_that_was_never_streamed_is_reported_as_a_difference(shop: Shop) -> None:
    shop.order(1)
    shop.order(2)
    shop.carry()
    shop.streaming = False
    shop.order(1, total="99.00")  # the connector never saw it
    shop.streaming = True
    found = compare(shop)
    assert not found.equal
    assert found.different == {(1,): ["total"]}


def test_all_differing_columns_are_named(shop: Shop) -> None:
    shop.order(1)
    shop.carry()
    shop.streaming = False
    shop.order(1, customer_id="BERT", total="99.00")
    shop.streaming = True
    assert compare(shop).different == {(1,): ["customer_id", "total"]}


def test_missing_and_extra_rows_are_reported(shop: Shop) -> None:
    shop.order(1)
    shop.order(2)
    shop.carry()
    shop.streaming = False
    shop.delete_order(1)
    shop.order(3)
    shop.streaming = True
    found = compare(shop)
    assert (found.missing, found.extra) == ([(3,)], [(1,)])
    assert not found.equal


def test_the_comparison_waits_for_a_heartbeat_after_its_snapshot(shop: Shop) -> None:
    shop.streaming = False
    with pytest.raises(ContractError, match="did not write the heartbeat"):
        compare(shop)
