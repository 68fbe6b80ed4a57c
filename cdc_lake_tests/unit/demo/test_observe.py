"""What the demo sees: records, and the distinct changes among them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cdc_lake.demo import stories
from cdc_lake.demo.observe import Observer
from cdc_lake.samples import stories as at_source
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake_tests.fake_pipeline import World


@pytest.fixture
def see(shop: World) -> Observer:
    """An observer of the orders."""
    return Observer(shop.orders, shop.resolved, shop.bucket)


def carry(shop: World) -> None:
    """Land and apply what there is."""
    shop.carry()
    shop.athena.sql.make("shop_lake", "totals", ["total"], [(1,)])


def test_counts_by_stage(shop: World, see: Observer) -> None:
    for number in (1, 2, 3):
        shop.order(number)
    shop.order(1, total="11.00")
    shop.delete_order(2)
    carry(shop)
    found = see.counts("totals")
    assert found.stages == {"source": 2, "topic": 5, "raw": 5, "lake": 2, "dataset": 1}
    assert found.records == {"topic": 5, "raw": 5}


def test_a_snapshot_that_was_sent_again_counts_once(shop: World, see: Observer) -> None:
    for told in ("first", "true"):  # interrupted after two rows
        shop.order(1 if told == "first" else 2, snapshot=told)
    for number, told in enumerate(("first", "true", "last"), 1):
        shop.order(number, snapshot=told)
    carry(shop)
    found = see.counts("totals")
    assert found.stages == {"source": 3, "topic": 3, "raw": 3, "lake": 3, "dataset": 1}
    assert found.records == {"topic": 5, "raw": 5}


def test_a_change_delivered_twice_counts_once(shop: World, see: Observer) -> None:
    shop.order(1)
    [message] = shop.kafka.peek(shop.orders.topic)
    shop.kafka.send(shop.orders.topic, message.value)
    carry(shop)
    assert see.counts("totals").stages["raw"] == 1


def test_the_changes_of_one_order_in_their_order(shop: World, see: Observer) -> None:
    for total in ("1.00", "2.00", "3.00"):
        shop.order(7, total=total)
        shop.order(8)
    carry(shop)
    assert [record["total"] for record in see.changes(see.raw_records(), 7)] == ["1.00", "2.00", "3.00"]


def test_a_query_without_a_row_has_no_value(shop: World, see: Observer) -> None:
    carry_nothing = 'SELECT order_id FROM "shop_lake"."orders" WHERE order_id = 99'
    assert see.scalar(carry_nothing) is None
    assert shop.athena.sql.statements[-1] == carry_nothing


class Told:
    """Stands for an observer: what it sees is given."""

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
def _told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source takes every change."""
    for name in ("ship_order", "insert_order_with_lines", "delete_order"):
        monkeypatch.setattr(at_source, name, lambda *_, **__: None)
    monkeypatch.setattr(ConnectionParameters, "connect", lambda _self: None)


SNAPSHOT = {"__op": "r", "shipped_date": None, "order_items": "[]"}
SHIPPED = {"__op": "u", "shipped_date": 10392}
ITEMS = [{"__op": "c", "order_items": "[" + ",".join(["{}"] * count) + "]"} for count in range(4)]


@pytest.mark.usefixtures("_told")
@pytest.mark.parametrize(
    ("tell", "told", "ok"),
    [
        (stories.ship, Told([SNAPSHOT, SHIPPED], "1998-06-15"), True),
        (stories.ship, Told([SNAPSHOT, SHIPPED], "1998-06-16"), False),
        (stories.ship, Told([SNAPSHOT, SHIPPED, SHIPPED], "1998-06-15"), False),
        (stories.ship, Told([SNAPSHOT, {"__op": "u", "shipped_date": 10393}], "1998-06-15"), False),
        (stories.insert, Told(ITEMS, 3), True),
        (stories.insert, Told(ITEMS[:3], 3), False),
        (stories.insert, Told(ITEMS, 2), False),
        (stories.insert, Told([ITEMS[0], ITEMS[2], ITEMS[1], ITEMS[3]], 3), False),
        (stories.delete, Told([], 0, True), True),
        (stories.delete, Told([], 1, True), False),
        (stories.delete, Told([], 0, False), False),
        (stories.delete, Told([], 0, None), False),
    ],
)
def test_a_story_is_well_only_as_it_has_to_be_seen(tell: Any, told: Any, ok: bool) -> None:  # noqa: ANN401
    carried: list[int] = []
    assert tell(told, lambda: carried.append(1))["ok"] is ok
    assert carried == [1]
