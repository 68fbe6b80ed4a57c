"""Hard deletes: a tombstone stays for the replay window, and a later change does not restore the row."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.objects import dead_letters
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.maintenance import purge
from cdc_lake.jobs.maintenance.purge import PurgeReport, PurgeSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.maintenance.dated_changes import WINDOW, at, change, heartbeat
from cdc_lake_tests.integration.jobs.no_spark import NoSpark

TESTS_IN_CI = 3


@pytest.fixture
def table_with_deletes(new_table: NewTable) -> LakeTable:
    """Return a table on day 16: key 1 was deleted on day 10, key 2 on day 10.5, key 3 on day 16, key 4 not."""
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
    """Return note and deleted flag by key; both readers must agree."""
    found = {row["id"]: (row["note"], row["__deleted"]) for row in table.by_hudi_rs()}
    assert found == {row["id"]: (row["note"], row["__deleted"]) for row in table.by_spark()}
    return found


def letters(table: LakeTable) -> list[dead_letters.DeadLetter]:
    """Return the open dead letters."""
    return list(dead_letters.letters(table.store, table.name))


def test_a_tombstone_within_the_window_stays_and_wins_over_a_late_update(table_with_deletes: LakeTable) -> None:
    before = table_with_deletes.checkpoint()
    report = purged(table_with_deletes)
    assert (report.instant, report.purged, report.why) == (None, 0, "no tombstone is older than the replay window")
    assert table_with_deletes.checkpoint() == before
    table_with_deletes.deliver([change(1, "u", 9, note="late")], watermark=heartbeat(16.9))
    table_with_deletes.upsert()
    assert rows(table_with_deletes)[1] == (None, True)


def test_a_tombstone_past_the_window_is_purged_and_the_checkpoint_is_kept(table_with_deletes: LakeTable) -> None:
    table_with_deletes.deliver([], watermark=heartbeat(17.2))
    table_with_deletes.upsert()
    before = table_with_deletes.checkpoint()
    report = purged(table_with_deletes)
    assert report.purged == 1
    assert set(rows(table_with_deletes)) == {2, 3, 4}
    bounds = {"purged_to": report.purged_to, "purged_before_ms": at(17.2) - WINDOW * 500}
    assert table_with_deletes.checkpoint() == before.model_copy(update=bounds)
    assert upsert.run(cast(SparkSession, NoSpark()), table_with_deletes.spec).commit is None
    assert purged(table_with_deletes).purged == 0
    assert_late_changes_of_unknown_keys_are_dead_letters(table_with_deletes)


def assert_late_changes_of_unknown_keys_are_dead_letters(table: LakeTable) -> None:
    """A key that is not in the table may have been purged; for a key that is in the table, the event order decides."""
    table.deliver(
        [change(1, "u", 9, note="too late"), change(4, "u", 9, note="in order"), change(2, "u", 9, note="too old")],
        watermark=heartbeat(17.3),
    )
    report = table.upsert()
    assert report.dead_letters == 1
    [letter] = letters(table)
    assert "it arrives later than the replay window allows" in letter.reason
    assert rows(table) == {2: (None, True), 3: (None, True), 4: ("in order", False)}
    assert_a_newer_change_inserts_a_purged_key_again(table)


def assert_a_newer_change_inserts_a_purged_key_again(table: LakeTable) -> None:
    table.deliver([change(1, "c", 17.4, note="again")], watermark=heartbeat(30))
    assert table.upsert().dead_letters == 0
    assert rows(table)[1] == ("again", False)
    assert purged(table).purged == 2
    assert set(rows(table)) == {1, 4}
    assert_a_replay_from_the_first_offset_changes_nothing(table)


def assert_a_replay_from_the_first_offset_changes_nothing(table: LakeTable) -> None:
    """The replay contains the deletes too, so no earlier update is the newest change of its key."""
    live = {key: row for key, row in rows(table).items() if not row[1]}
    inserts = [change(key, "c", 1, note="first") for key in (1, 2, 3, 4)]
    deletes = [change(1, "d", 10), change(2, "d", 10.5), change(3, "d", 16)]
    table.deliver([*inserts, *deletes, change(4, "u", 9, note="in order"), change(1, "c", 17.4, note="again")])
    assert table.upsert().dead_letters == 0
    assert {key: row for key, row in rows(table).items() if not row[1]} == live


def test_a_transaction_that_was_open_across_the_purge_is_applied(table_with_deletes: LakeTable) -> None:
    """Its change has a lower LSN than the purged tombstone, but was committed after the purge."""
    table_with_deletes.deliver([], watermark=heartbeat(17.2))
    table_with_deletes.upsert()
    assert purged(table_with_deletes).purged == 1
    table_with_deletes.deliver(
        [{**change(9, "c", 5, note="long open"), "__source_ts_ms": at(17.3)}], watermark=heartbeat(17.4)
    )
    assert table_with_deletes.upsert().dead_letters == 0
    assert rows(table_with_deletes)[9] == ("long open", False)
    assert set(rows(table_with_deletes)) == {2, 3, 4, 9}


def test_a_longer_window_does_not_lower_the_purge_bounds(table_with_deletes: LakeTable) -> None:
    table_with_deletes.deliver([], watermark=heartbeat(17.2))
    table_with_deletes.upsert()
    assert purged(table_with_deletes).purged == 1
    before = table_with_deletes.checkpoint()
    table_with_deletes.deliver(
        [change(1, "d", 1.5)], watermark=heartbeat(17.3)
    )  # sent again, and older than the new window
    table_with_deletes.upsert()
    assert purge.run(table_with_deletes.engines.spark, PurgeSpec(table_with_deletes.spec, 15 * 86_400)).purged == 1
    after = table_with_deletes.checkpoint()
    assert (after.purged_to, after.purged_before_ms) == (before.purged_to, before.purged_before_ms)


def test_without_a_heartbeat_nothing_is_purged(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    assert purged(table).why == "the table has not seen a heartbeat of the source yet"
    table.deliver([change(1, "d", 1)])
    table.upsert()
    assert purged(table).instant is None
    assert set(rows(table)) == {1}


def test_tombstones_of_a_partitioned_table_are_purged_from_each_partition(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    spec = replace(table.spec, partition_by=("note",))
    table.deliver([change(key, "c", 1, note=f"n{key % 2}") for key in range(4)], watermark=heartbeat(1))
    table.upsert(spec)
    table.deliver([change(key, "d", 2, note=f"n{key % 2}") for key in (0, 1)], watermark=heartbeat(20))
    table.upsert(spec)
    assert purged(table, spec).purged == 2
    assert {row["id"] for row in table.by_spark()} == {2, 3}
