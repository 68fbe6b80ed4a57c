"""Hard deletes: a tombstone stays for the replay window, and what comes later than that brings nothing back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.table import timeline
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert import UpsertSpec
from cdc_lake.jobs.maintenance import purge
from cdc_lake.jobs.maintenance.purge import PurgeReport, PurgeSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.test_upsert_stops import NoSpark

DAY = 86_400_000
WINDOW = 7 * 86_400
START = 1_700_000_000_000


def at(day: float) -> int:
    """A day's time at the source, in milliseconds."""
    return START + int(day * DAY)


def change(key: int, op: str, day: float, **values: object) -> dict[str, Any]:
    """A change on a day; the LSN grows with the days."""
    return {**event(key, op, int(day * 1000), **values), "__source_ts_ms": at(day)}


def heartbeat(day: float) -> Watermark:
    """What a manifest has seen."""
    return Watermark(source_ts_ms=at(day), lsn=int(day * 1000))


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    """Keys 1 and 2 were deleted on day 10, key 3 on day 16; 4 lives. It is day 16."""
    table = new_table(COLUMNS, KEY)
    table.deliver([change(key, "c", 1, note="first") for key in (1, 2, 3, 4)], watermark=heartbeat(1))
    table.upsert()
    deletes = [change(1, "d", 10), change(2, "d", 10.5), change(3, "d", 16)]
    table.deliver(deletes, watermark=heartbeat(16))
    table.upsert()
    return table


def purged(table: LakeTable, spec: UpsertSpec | None = None) -> PurgeReport:
    """Run the purge."""
    return purge.run(table.engines.spark, PurgeSpec(spec or table.spec, WINDOW))


def rows(table: LakeTable) -> dict[object, tuple[object, object]]:
    """Note and deletedness by key, by two readers."""
    found = {row["id"]: (row["note"], row["__deleted"]) for row in table.by_hudi_rs()}
    assert found == {row["id"]: (row["note"], row["__deleted"]) for row in table.by_spark()}
    return found


def checkpoint(table: LakeTable) -> timeline.Checkpoint:
    """The table's checkpoint."""
    commit = timeline.last_commit(table.store, table.spec.prefix)
    assert commit is not None
    assert commit.checkpoint is not None
    return commit.checkpoint


def letters(table: LakeTable) -> list[dead_letters.DeadLetter]:
    """What could not be applied."""
    return list(dead_letters.letters(table.store, table.name))


def test_a_tombstone_stays_for_the_window_and_no_late_update_gets_past_it(table: LakeTable) -> None:
    before = checkpoint(table)
    report = purged(table)
    assert (report.instant, report.purged, report.why) == (None, 0, "no tombstone is older than the replay window")
    assert checkpoint(table) == before
    table.deliver([change(1, "u", 9, note="late")], watermark=heartbeat(16.9))
    table.upsert()
    assert rows(table)[1] == (None, True)


def test_past_the_window_it_goes_and_the_checkpoint_is_carried_on(table: LakeTable) -> None:
    table.deliver([], watermark=heartbeat(17.2))
    table.upsert()
    before = checkpoint(table)
    report = purged(table)
    assert report.purged == 1
    assert set(rows(table)) == {2, 3, 4}
    told = {"purged_to": report.purged_to, "purged_before_ms": at(17.2) - WINDOW * 500}
    assert checkpoint(table) == before.model_copy(update=told)
    assert upsert.run(cast(SparkSession, NoSpark()), table.spec).instant is None
    assert purged(table).purged == 0
    assert_that_what_comes_too_late_is_told(table)


def assert_that_what_comes_too_late_is_told(table: LakeTable) -> None:
    """Of a key that the table does not have: it may be purged. Of one that it has: the order decides, as ever."""
    table.deliver(
        [change(1, "u", 9, note="too late"), change(4, "u", 9, note="in order"), change(2, "u", 9, note="too old")],
        watermark=heartbeat(17.3),
    )
    report = table.upsert()
    assert report.dead_letters == 1
    [letter] = letters(table)
    assert "it arrives later than the replay window allows" in letter.reason
    assert rows(table) == {2: (None, True), 3: (None, True), 4: ("in order", False)}
    assert_that_a_key_comes_back_by_a_newer_change(table)


def assert_that_a_key_comes_back_by_a_newer_change(table: LakeTable) -> None:
    table.deliver([change(1, "c", 17.4, note="again")], watermark=heartbeat(30))
    assert table.upsert().dead_letters == 0
    assert rows(table)[1] == ("again", False)
    assert purged(table).purged == 2
    assert set(rows(table)) == {1, 4}
    assert_that_a_replay_of_everything_changes_nothing(table)


def assert_that_a_replay_of_everything_changes_nothing(table: LakeTable) -> None:
    """From the first offset: the deletes come too, so that no update of before is the newest of its key."""
    live = {key: row for key, row in rows(table).items() if not row[1]}
    told = [change(key, "c", 1, note="first") for key in (1, 2, 3, 4)]
    deletes = [change(1, "d", 10), change(2, "d", 10.5), change(3, "d", 16)]
    table.deliver([*told, *deletes, change(4, "u", 9, note="in order"), change(1, "c", 17.4, note="again")])
    assert table.upsert().dead_letters == 0
    assert {key: row for key, row in rows(table).items() if not row[1]} == live


def test_a_transaction_that_was_open_across_the_purge_is_applied(table: LakeTable) -> None:
    """Its change has a lower LSN than the tombstone that went, and was committed after that was purged."""
    table.deliver([], watermark=heartbeat(17.2))
    table.upsert()
    assert purged(table).purged == 1
    table.deliver([{**change(9, "c", 5, note="long open"), "__source_ts_ms": at(17.3)}], watermark=heartbeat(17.4))
    assert table.upsert().dead_letters == 0
    assert rows(table)[9] == ("long open", False)
    assert set(rows(table)) == {2, 3, 4, 9}


def test_a_window_that_was_made_longer_takes_nothing_back(table: LakeTable) -> None:
    table.deliver([], watermark=heartbeat(17.2))
    table.upsert()
    assert purged(table).purged == 1
    before = checkpoint(table)
    table.deliver([change(1, "d", 1.5)], watermark=heartbeat(17.3))  # told again, and older than the new window
    table.upsert()
    assert purge.run(table.engines.spark, PurgeSpec(table.spec, 15 * 86_400)).purged == 1
    after = checkpoint(table)
    assert (after.purged_to, after.purged_before_ms) == (before.purged_to, before.purged_before_ms)


def test_without_a_heartbeat_nothing_is_known_to_be_old(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    assert purged(table).why == "the table has not seen a heartbeat of the source yet"
    table.deliver([change(1, "d", 1)])
    table.upsert()
    assert purged(table).instant is None
    assert set(rows(table)) == {1}


def test_tombstones_of_a_partitioned_table_go_from_their_partitions(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    spec = replace(table.spec, partition_by=("note",))
    table.deliver([change(key, "c", 1, note=f"n{key % 2}") for key in range(4)], watermark=heartbeat(1))
    table.upsert(spec)
    table.deliver([change(key, "d", 2, note=f"n{key % 2}") for key in (0, 1)], watermark=heartbeat(20))
    table.upsert(spec)
    assert purged(table, spec).purged == 2
    assert {row["id"] for row in table.by_spark()} == {2, 3}
