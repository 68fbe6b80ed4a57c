"""`cdc-lake migrate`: when a table in local time becomes one in UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lake.contract.errors import LeaseHeldError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.table import instants, lease
from cdc_lake.pipeline.operations.timeline_migration import to_utc
from cdc_lake_tests.fake_pipeline import World


@dataclass
class Clock:
    """A clock that sleeping moves on."""

    moment: datetime = datetime(2026, 11, 1, 12, tzinfo=UTC)
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        """The clock's time."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Pass the time."""
        self.slept.append(seconds)
        self.moment += timedelta(seconds=seconds)


def orders(shop: World, zone: str, instant: str) -> str:
    """The table orders, with one commit; its prefix."""
    prefix = shop.orders.lake_prefix
    shop.bucket.write(f"{prefix}.hoodie/hoodie.properties", f"hoodie.table.timeline.timezone={zone}\n".encode())
    shop.bucket.write(f"{prefix}.hoodie/{instant}.commit", b"{}")
    return prefix


def migrated(shop: World, clock: Clock) -> list[str]:
    return list(to_utc(shop.flow, shop.bucket, "a test", clock.now, clock.sleep))


def test_a_table_behind_utc_is_migrated_at_once(shop: World) -> None:
    prefix, clock = orders(shop, "LOCAL", "20261101083000000"), Clock()
    assert migrated(shop, clock) == [
        "orders: commits are named in UTC from now on",
        "customers: there is no table yet",
    ]
    assert instants.zone(shop.bucket, prefix) == "UTC"
    assert clock.slept == []
    assert migrated(shop, clock)[0] == "orders: commits are named in UTC already"


def test_a_table_ahead_of_utc_waits_until_its_newest_instant_is_in_the_past(shop: World) -> None:
    prefix, clock = orders(shop, "LOCAL", "20261101173000000"), Clock()
    said = migrated(shop, clock)
    assert said[0] == "orders: waiting until 2026-11-01 17:30:00 UTC, when the newest commit is in the past"
    assert clock.slept == [5.5 * 3600 + 1]
    assert instants.zone(shop.bucket, prefix) == "UTC"
    instants.require_writable(shop.bucket, prefix, clock.now)


def test_what_is_committed_while_it_waits_is_waited_for_too(shop: World) -> None:
    prefix, clock = orders(shop, "LOCAL", "20261101130000000"), Clock()
    lines = to_utc(shop.flow, shop.bucket, "a test", clock.now, clock.sleep)
    assert "13:00:00" in next(lines)
    shop.bucket.write(f"{prefix}.hoodie/20261101140000000.commit", b"{}")  # by an older release
    assert "14:00:00" in next(lines)
    assert next(lines) == "orders: commits are named in UTC from now on"
    assert clock.moment > datetime(2026, 11, 1, 14, tzinfo=UTC)


def test_a_table_that_is_being_written_is_left_alone(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = orders(shop, "LOCAL", "20261101083000000")
    held = lease.held
    monkeypatch.setattr(lease, "held", lambda store, key, owner: held(store, key, owner, wait_seconds=0))
    with (
        held(shop.bucket, object_names.lease_key("shop", "orders"), "a writer"),
        pytest.raises(LeaseHeldError, match="a writer writes here"),
    ):
        migrated(shop, Clock())
    assert instants.zone(shop.bucket, prefix) == "LOCAL"
