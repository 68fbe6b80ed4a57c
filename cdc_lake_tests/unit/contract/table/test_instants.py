"""Instants compared with the clock: which tables may be written, and how a table's timeline is set to UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cdc_lake.contract.errors import LocalTimeError, ObjectConflictError, ObjectDamagedError, TableAheadError
from cdc_lake.contract.table import instants
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.table.timeline_files import HOODIE, TABLE

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
PROPERTIES = """\
#Updated at 2026-11-01T12:00:00.123Z
#Sun Nov 01 12:00:00 UTC 2026
hoodie.table.precombine.field=__order
hoodie.table.version=6
hoodie.table.timeline.timezone=LOCAL
hoodie.archivelog.folder=archived
hoodie.table.checksum=2622850774
"""
KEY = f"{HOODIE}hoodie.properties"


def noon() -> datetime:
    return NOON


def instant_of(moment: datetime) -> str:
    """Return the instant that Hudi assigns to a time."""
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def make_table(store: MemoryStore, *moments: datetime, zone: str = "UTC") -> None:
    """Create a table with a commit at each of these times."""
    store.write(KEY, PROPERTIES.replace("=LOCAL", f"={zone}").encode())
    for moment in moments:
        store.write(f"{HOODIE}{instant_of(moment)}.commit", b"{}")


def test_a_missing_table_may_be_written(store: MemoryStore) -> None:
    instants.require_writable(store, TABLE, noon)


def test_a_table_with_past_instants_may_be_written(store: MemoryStore) -> None:
    make_table(store, NOON - timedelta(hours=1), NOON - timedelta(milliseconds=1))
    instants.require_writable(store, TABLE, noon)
    assert store.total <= 2


@pytest.mark.parametrize("name", ["commit", "commit.requested", "inflight", "rollback", "clean.inflight"])
def test_a_table_ahead_of_the_clock_is_rejected(store: MemoryStore, name: str) -> None:
    make_table(store, NOON - timedelta(hours=1))
    store.write(f"{HOODIE}{instant_of(NOON + timedelta(seconds=90))}.{name}", b"")
    with pytest.raises(TableAheadError, match=r"newest instant 20261101120130000 \(UTC\) is 90\.0 s later than this"):
        instants.require_writable(store, TABLE, noon)


@pytest.mark.parametrize("zone", ["LOCAL", None])
def test_a_table_in_local_time_is_rejected(store: MemoryStore, zone: str | None) -> None:
    line = f"hoodie.table.timeline.timezone={zone}\n" if zone else ""
    store.write(KEY, PROPERTIES.replace("hoodie.table.timeline.timezone=LOCAL\n", line).encode())
    with pytest.raises(LocalTimeError, match="Run `cdc-lake migrate northwind`, which sets UTC"):
        instants.require_writable(store, TABLE, noon)


def test_local_instants_decrease_at_the_end_of_daylight_saving_and_utc_instants_do_not() -> None:
    before = datetime(2026, 11, 1, 4, 29, tzinfo=UTC)
    after = before + timedelta(minutes=2)
    local = ZoneInfo("America/St_Johns")
    assert instant_of(after.astimezone(local)) < instant_of(before.astimezone(local))
    assert instant_of(after) > instant_of(before)
    assert instants.time_of(instant_of(after)) == after


def test_setting_utc_changes_one_line(store: MemoryStore) -> None:
    make_table(store, zone="LOCAL")
    instants.set_utc(store, TABLE)
    stored = store.get(KEY)
    assert stored is not None
    assert stored.body.decode() == PROPERTIES.replace("=LOCAL", "=UTC")
    instants.require_writable(store, TABLE, noon)


def test_setting_utc_adds_a_missing_line(store: MemoryStore) -> None:
    store.write(KEY, b"hoodie.table.version=6")
    instants.set_utc(store, TABLE)
    stored = store.get(KEY)
    assert stored is not None
    assert stored.body == b"hoodie.table.version=6\nhoodie.table.timeline.timezone=UTC\n"


def test_setting_utc_succeeds_after_a_lost_response(store: MemoryStore) -> None:
    make_table(store, zone="LOCAL")
    store.lose_answers()
    instants.set_utc(store, TABLE)
    assert instants.zone(store, TABLE) == "UTC"


def test_properties_that_another_process_replaced_are_not_overwritten(store: MemoryStore) -> None:
    make_table(store, zone="LOCAL")
    store.before_put = lambda key: store.write(key, b"hoodie.table.version=6\n")
    with pytest.raises(ObjectConflictError, match="another process replaced"):
        instants.set_utc(store, TABLE)
    assert store.objects[KEY].body == b"hoodie.table.version=6\n"


def test_a_table_without_properties_is_reported_as_damaged(store: MemoryStore) -> None:
    with pytest.raises(ObjectDamagedError, match=r"hoodie\.properties is missing"):
        instants.set_utc(store, TABLE)


def test_a_commit_waits_until_the_stores_clock_has_passed_its_instant(store: MemoryStore) -> None:
    # The fake store's clock advances by one second with each write; make_table() makes the first two writes.
    make_table(store, datetime.fromtimestamp(4.5, UTC))
    instants.await_store_clock(store, TABLE, "lease", lambda: store.write("lease", b""))
    assert [item.modified for item in store.scan("lease")] == [datetime.fromtimestamp(5, UTC)]


def test_a_store_whose_clock_is_far_behind_fails_the_commit(store: MemoryStore) -> None:
    make_table(store, NOON)
    with pytest.raises(
        TableAheadError, match=r"^Cannot commit .* store's clock \(1970-01-01 00:00:03 UTC, .* is behind"
    ):
        instants.await_store_clock(store, TABLE, "lease", lambda: store.write("lease", b""), seconds=0)
