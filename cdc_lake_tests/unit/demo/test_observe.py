"""Observer of the demo: numbers of records and of distinct changes; and Northwind's example changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cdc_lake.demo import northwind
from cdc_lake.demo.observe import Observer
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.northwind import source_changes
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


@pytest.fixture
def observer(shop: Shop) -> Observer:
    """An observer of the orders."""
    return Observer(shop.orders, shop.resolved, shop.bucket)


def carry(shop: Shop) -> None:
    """Land and apply everything, and create the dataset `totals`."""
    shop.carry()
    shop.athena.sql.make("shop_lake", "totals", ["total"], [(1,)])


def test_rows_and_records_are_counted_by_stage(shop: Shop, observer: Observer) -> None:
    for number in (1, 2, 3):
        shop.order(number)
    shop.order(1, total="11.00")
    shop.delete_order(2)
    carry(shop)
    found = observer.counts()
    assert found.stages == {"source": 2, "topic": 5, "raw": 5, "lake": 2}
    assert found.records == {"topic": 5, "raw": 5}


def test_a_repeated_snapshot_counts_once(shop: Shop, observer: Observer) -> None:
    for mode in ("first", "true"):  # interrupted after two rows
        shop.order(1 if mode == "first" else 2, snapshot=mode)
    for number, mode in enumerate(("first", "true", "last"), 1):
        shop.order(number, snapshot=mode)
    carry(shop)
    found = observer.counts()
    assert found.stages == {"source": 3, "topic": 3, "raw": 3, "lake": 3}
    assert found.records == {"topic": 5, "raw": 5}


def test_a_change_delivered_twice_counts_once(shop: Shop, observer: Observer) -> None:
    shop.order(1)
    [message] = shop.kafka.peek(shop.orders.topic)
    shop.kafka.send(shop.orders.topic, message.value)
    carry(shop)
    assert observer.counts().stages["raw"] == 1


def test_changes_of_one_order_are_returned_in_order(shop: Shop, observer: Observer) -> None:
    for total in ("1.00", "2.00", "3.00"):
        shop.order(7, total=total)
        shop.order(8)
    carry(shop)
    assert [record["total"] for record in observer.changes(observer.raw_records(), 7)] == ["1.00", "2.00", "3.00"]


def test_a_query_without_a_row_has_no_value(shop: Shop, observer: Observer) -> None:
    carry_nothing = 'SELECT order_id FROM "shop_lake"."orders" WHERE order_id = 99'
    assert observer.scalar(carry_nothing) is None
    assert shop.athena.sql.statements[-1] == carry_nothing


def test_rows_of_a_dataset_are_counted(shop: Shop, observer: Observer) -> None:
    carry(shop)
    assert observer.count_rows("shop_lake", "totals") == 1


class FakeObserver:
    """A fake observer with given records and query results."""

    def __init__(self, records: list[dict[str, Any]], *scalars: object) -> None:
        self._records, self._scalars = records, list(scalars)
        self.login = SimpleNamespace(connect=lambda: SimpleNamespace(close=lambda: None))
        self.table = SimpleNamespace(view="cdc_events_current", name="cdc_events")

    def raw_records(self) -> list[dict[str, Any]]:
        """See Observer."""
        return self._records

    def changes(self, records: list[dict[str, Any]], _order_id: int) -> list[dict[str, Any]]:
        """See Observer."""
        return records

    def scalar(self, _sql: str) -> object:
        """See Observer."""
        return self._scalars.pop(0)


@pytest.fixture
def _no_source_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the changes at the source by functions that do nothing."""
    for name in ("ship_order", "insert_order_with_lines", "delete_order"):
        monkeypatch.setattr(source_changes, name, lambda *_, **__: None)
    monkeypatch.setattr(ConnectionParameters, "connect", lambda _self: None)


SNAPSHOT = {"__op": "r", "shipped_date": None, "order_items": "[]"}
SHIPPED = {"__op": "u", "shipped_date": 10392}
ITEMS = [{"__op": "c", "order_items": "[" + ",".join(["{}"] * count) + "]"} for count in range(4)]


@pytest.mark.usefixtures("_no_source_changes")
@pytest.mark.parametrize(
    ("story", "fake_observer", "ok"),
    [
        (northwind.ship, FakeObserver([SNAPSHOT, SHIPPED], "1998-06-15"), True),
        (northwind.ship, FakeObserver([SNAPSHOT, SHIPPED], "1998-06-16"), False),
        (northwind.ship, FakeObserver([SNAPSHOT, SHIPPED, SHIPPED], "1998-06-15"), False),
        (northwind.ship, FakeObserver([SNAPSHOT, {"__op": "u", "shipped_date": 10393}], "1998-06-15"), False),
        (northwind.insert, FakeObserver(ITEMS, 3), True),
        (northwind.insert, FakeObserver(ITEMS[:3], 3), False),
        (northwind.insert, FakeObserver(ITEMS, 2), False),
        (northwind.insert, FakeObserver([ITEMS[0], ITEMS[2], ITEMS[1], ITEMS[3]], 3), False),
        (northwind.delete, FakeObserver([], 0, True), True),
        (northwind.delete, FakeObserver([], 1, True), False),
        (northwind.delete, FakeObserver([], 0, False), False),
        (northwind.delete, FakeObserver([], 0, None), False),
    ],
)
def test_an_example_change_is_ok_only_with_the_expected_records(story: Any, fake_observer: Any, ok: bool) -> None:  # noqa: ANN401
    carried: list[tuple[str, ...]] = []
    demo = SimpleNamespace(observer=fake_observer)
    assert story(demo, lambda *stages: carried.append(stages))["ok"] is ok
    assert carried == [("topic", "raw", "lake", "dataset", "dashboard")]
