"""The comparison by content: values as both sides spell them, and keys that change while it looks."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake_tests import row_comparison
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.row_comparison import Comparison, normal, streamed

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
def test_values_that_are_the_same(ours: object, theirs: object, kind: str) -> None:
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
def test_values_that_differ(ours: object, theirs: object, kind: str) -> None:
    assert normal(ours, kind) != normal(theirs, kind)


@pytest.mark.parametrize(
    ("streams", "column", "source"),
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
def test_a_key_in_the_stream_is_the_key_at_the_source(streams: object, column: str, source: object) -> None:
    described = Column(name="key", type=column)
    assert streamed(streams, described) == normal(source, described.lake_type)


def compare(shop: World) -> Comparison:
    """Orders at the source and in the lake."""
    return row_comparison.compare(
        shop.orders,
        shop.postgres,
        shop.kafka,
        shop.connect,
        shop.bucket,
        shop.athena,
        shop.deployment.snapshot_seconds,
    )


def test_equal(shop: World) -> None:
    shop.order(1)
    shop.order(2)
    shop.delete_order(1)
    shop.carry()
    found = compare(shop)
    assert found.equal
    assert (found.compared, found.changed_since) == (1, 0)


def test_nothing_at_all_is_equal(shop: World) -> None:
    assert compare(shop) == Comparison(0, 0, [], [], {})


def test_keys_changed_since_are_set_aside_and_counted(shop: World) -> None:
    for number in (1, 2, 3):
        shop.order(number)
    shop.carry()
    shop.order(1, total="99.00")  # updated
    shop.delete_order(2)
    shop.order(4)  # inserted; none of the three is applied
    found = compare(shop)
    assert found.equal
    assert (found.compared, found.changed_since) == (1, 3)


def test_what_is_landed_and_not_applied_counts_as_changed_too(shop: World) -> None:
    shop.order(1)
    shop.carry()
    shop.order(1, total="99.00")
    shop.land(shop.orders)
    assert compare(shop).changed_since == 1


def test_a_change_that_the_lake_lost_is_no_excuse(shop: World) -> None:
    shop.order(1)
    shop.order(2)
    shop.carry()
    shop.streaming = False
    shop.order(1, total="99.00")  # the connector never saw it
    shop.streaming = True
    found = compare(shop)
    assert not found.equal
    assert found.different == {(1,): ["total"]}


def test_all_columns_that_differ_are_named(shop: World) -> None:
    shop.order(1)
    shop.carry()
    shop.streaming = False
    shop.order(1, customer_id="BERT", total="99.00")
    shop.streaming = True
    assert compare(shop).different == {(1,): ["customer_id", "total"]}


def test_missing_and_extra(shop: World) -> None:
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


def test_it_waits_for_the_stream_to_pass_the_snapshot(shop: World) -> None:
    shop.streaming = False
    with pytest.raises(ContractError, match="did not write the heartbeat"):
        compare(shop)
