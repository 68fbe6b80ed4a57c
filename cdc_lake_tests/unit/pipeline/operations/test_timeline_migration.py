"""`cdc-lake migrate`: when a table with local-time instants is switched to UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lake.contract.errors import LeaseHeldError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.table import instants, lease
from cdc_lake.pipeline.operations.timeline_migration import to_utc
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


@dataclass
class Clock:
    """A clock that sleep() advances."""

    moment: datetime = datetime(2026, 11, 1, 12, tzinfo=UTC)
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the clock's time."""
        return self.moment

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.slept.append(seconds)
        self.moment += timedelta(seconds=seconds)


def make_orders_table(shop: Shop, zone: str, instant: str) -> str:
    """Create the orders' table with one commit in this time zone; return its prefix."""
    prefix = shop.orders.lake_prefix
    shop.bucket.write(f"{prefix}.hoodie/hoodie.properties", f"hoodie.table.timeline.timezone={zone}\n".encode())
    shop.bucket.write(f"{prefix}.hoodie/{instant}.commit", b"{}")
    return prefix


def migrate(shop: Shop, clock: Clock) -> list[str]:
    return list(to_utc(shop.pipeline, shop.bucket, "a test", clock.now, clock.sleep))


def test_a_table_behind_utc_is_migrated_at_once(shop: Shop) -> None:
    prefix, clock = make_orders_table(shop, "LOCAL", "20261101083000000"), Clock()
    assert migrate(shop, clock) == [
        "orders: commits are named in UTC from now on",
        "customers: the Hudi table does not exist yet",
    ]
    assert instants.zone(shop.bucket, prefix) == "UTC"
    assert clock.slept == []
    assert migrate(shop, clock)[0] == "orders: commits are named in UTC already"


def test_a_table_ahead_of_utc_waits_until_its_newest_instant_is_in_the_past(shop: Shop) -> None:
    prefix, clock = make_orders_table(shop, "LOCAL", "20261101173000000"), Clock()
    lines = migrate(shop, clock)
    assert lines[0] == "orders: waiting until 2026-11-01 17:30:00 UTC, when the newest commit is in the past"
    assert clock.slept == [5.5 * 3600 + 1]
    assert instants.zone(shop.bucket, prefix) == "UTC"
    instants.require_writable(shop.bucket, prefix, clock.now)


def test_a_commit_during_the_wait_extends_the_wait(shop: Shop) -> None:
    prefix, clock = make_orders_table(shop, "LOCAL", "20261101130000000"), Clock()
    lines = to_utc(shop.pipeline, shop.bucket, "a test", clock.now, clock.sleep)
    assert "13:00:00" in next(lines)
    shop.bucket.write(f"{prefix}.hoodie/20261101140000000.commit", b"{}")  # by an older release
    assert "14:00:00" in next(lines)
    assert next(lines) == "orders: commits are named in UTC from now on"
    assert clock.moment > datetime(2026, 11, 1, 14, tzinfo=UTC)


def test_a_table_with_a_writer_is_not_migrated(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_orders_table(shop, "LOCAL", "20261101083000000")
    held = lease.held
    monkeypatch.setattr(lease, "held", lambda store, key, owner: held(store, key, owner, wait_seconds=0))
    with (
        held(shop.bucket, object_names.lease_key("shop", "orders"), "a writer"),
        pytest.raises(LeaseHeldError, match="a writer holds"),
    ):
        migrate(shop, Clock())
    assert instants.zone(shop.bucket, prefix) == "LOCAL"
