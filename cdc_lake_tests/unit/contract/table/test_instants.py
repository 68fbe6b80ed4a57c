"""Instants against the clock: which tables may be written, and what setting UTC changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cdc_lake.contract.errors import LocalTimeError, ObjectConflictError, ObjectDamagedError, TableAheadError
from cdc_lake.contract.table import instants
from cdc_lake_tests.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.table.test_timeline import HOODIE, TABLE

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


def named(moment: datetime) -> str:
    """The instant that Hudi gives a moment."""
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def made(store: MemoryStore, *moments: datetime, zone: str = "UTC") -> None:
    """A table with a commit at each moment."""
    store.write(KEY, PROPERTIES.replace("=LOCAL", f"={zone}").encode())
    for moment in moments:
        store.write(f"{HOODIE}{named(moment)}.commit", b"{}")


def test_a_table_that_does_not_exist_may_be_written(store: MemoryStore) -> None:
    instants.require_writable(store, TABLE, noon)


def test_a_table_whose_instants_are_in_the_past_may_be_written(store: MemoryStore) -> None:
    made(store, NOON - timedelta(hours=1), NOON - timedelta(milliseconds=1))
    instants.require_writable(store, TABLE, noon)
    assert store.total <= 2


@pytest.mark.parametrize("name", ["commit", "commit.requested", "inflight", "rollback", "clean.inflight"])
def test_a_table_that_is_ahead_of_the_clock_is_refused(store: MemoryStore, name: str) -> None:
    made(store, NOON - timedelta(hours=1))
    store.write(f"{HOODIE}{named(NOON + timedelta(seconds=90))}.{name}", b"")
    with pytest.raises(TableAheadError, match=r"newest instant 20261101120130000 \(UTC\) is 90\.0 s later than this"):
        instants.require_writable(store, TABLE, noon)


@pytest.mark.parametrize("zone", ["LOCAL", None])
def test_a_table_in_local_time_is_refused(store: MemoryStore, zone: str | None) -> None:
    line = f"hoodie.table.timeline.timezone={zone}\n" if zone else ""
    store.write(KEY, PROPERTIES.replace("hoodie.table.timeline.timezone=LOCAL\n", line).encode())
    with pytest.raises(LocalTimeError, match="Run `cdc-lake migrate northwind`, which sets UTC"):
        instants.require_writable(store, TABLE, noon)


def test_local_time_goes_back_when_daylight_saving_ends_and_utc_does_not() -> None:
    before = datetime(2026, 11, 1, 4, 29, tzinfo=UTC)
    after = before + timedelta(minutes=2)
    local = ZoneInfo("America/St_Johns")
    assert named(after.astimezone(local)) < named(before.astimezone(local))
    assert named(after) > named(before)
    assert instants.time_of(named(after)) == after


def test_setting_utc_changes_one_line(store: MemoryStore) -> None:
    made(store, zone="LOCAL")
    instants.set_utc(store, TABLE)
    stored = store.get(KEY)
    assert stored is not None
    assert stored.body.decode() == PROPERTIES.replace("=LOCAL", "=UTC")
    instants.require_writable(store, TABLE, noon)


def test_setting_utc_adds_the_line_that_is_missing(store: MemoryStore) -> None:
    store.write(KEY, b"hoodie.table.version=6")
    instants.set_utc(store, TABLE)
    stored = store.get(KEY)
    assert stored is not None
    assert stored.body == b"hoodie.table.version=6\nhoodie.table.timeline.timezone=UTC\n"


def test_setting_utc_twice_after_a_lost_answer(store: MemoryStore) -> None:
    made(store, zone="LOCAL")
    store.lose_answers()
    instants.set_utc(store, TABLE)
    assert instants.zone(store, TABLE) == "UTC"


def test_properties_that_were_replaced_meanwhile_stay(store: MemoryStore) -> None:
    made(store, zone="LOCAL")
    store.before_put = lambda key: store.write(key, b"hoodie.table.version=6\n")
    with pytest.raises(ObjectConflictError, match="another process replaced"):
        instants.set_utc(store, TABLE)
    assert store.objects[KEY].body == b"hoodie.table.version=6\n"


def test_a_table_without_properties(store: MemoryStore) -> None:
    with pytest.raises(ObjectDamagedError, match=r"hoodie\.properties is missing"):
        instants.set_utc(store, TABLE)
