"""Clustering: fewer files with the same rows, none of them changed, for both table types; and interrupted ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lake import reading
from cdc_lake.contract.errors import LeaseLostError
from cdc_lake.contract.table import failed_writes, file_slices, history, lease, timeline
from cdc_lake.contract.table.file_slices import Files
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake.jobs.maintenance import cluster
from cdc_lake.jobs.maintenance.cluster import ClusterSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

SMALL = 10 * 2**20


def files(table: LakeTable, spec: UpsertSpec) -> Files:
    """Return the number of the table's files."""
    commits = history.commits(table.store, spec.prefix)
    replaced = timeline.replaced_groups(table.store, spec.prefix)
    return file_slices.count(table.store.scan(spec.prefix), spec.prefix, commits, commits[0], replaced)


def content(table: LakeTable) -> list[tuple[object, ...]]:
    """Return the rows with the commit that each was changed by; Spark and hudi-rs must read the same rows."""
    found, by_hudi_rs = (
        sorted(
            ((row["id"], row["note"], row["__deleted"], row["qty"]) for row in read),
            key=lambda row: int(str(row[0])),
        )
        for read in (table.by_spark(), table.by_hudi_rs())
    )
    assert found == by_hudi_rs
    rows = table.engines.spark.read.format("hudi").load(table.spec.uri())
    commits = rows.select("id", reading.COMMIT_TIME).collect()
    assert [row[0] for row in sorted(commits)] == [row[0] for row in found]
    return [(*row, commit[1]) for row, commit in zip(found, sorted(commits), strict=True)]


def scattered(table: LakeTable, spec: UpsertSpec) -> None:
    """Write rows in many small files: a partition for each of three notes, each with files of several commits.

    Of the three rows of each file, the last commit changes up to two. Rows without a note are in Hive's partition.
    """
    notes = ("n0", "n1", None)
    for number in range(3):
        keys = range(10 * number, 10 * number + 9)
        table.deliver([event(key, "c", 100 + key, note=notes[key % 10 % 3], qty=key) for key in keys])
        table.upsert(spec)
    changes = [event(key, "u", 200 + key, note=notes[key % 10 % 3], qty=1000 + key) for key in (0, 3, 10, 11, 14, 22)]
    moved, deleted = event(1, "u", 300, note="n0", qty=1001), event(2, "d", 301, note=None, qty=2)
    table.deliver([*changes, event(5, "u", 302, note=None, qty=1005), moved, deleted])
    table.upsert(spec)


@pytest.fixture
def no_small_file_handling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit writes its new rows to a new file, as if the others were large."""
    from cdc_lake.jobs.hudi.writer import HudiTable

    options = HudiTable.options
    monkeypatch.setattr(HudiTable, "options", lambda table: {**options(table), "hoodie.parquet.small.file.limit": "0"})


@pytest.mark.usefixtures("no_small_file_handling")
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_small_files_become_one_in_each_partition_and_no_row_changes(
    new_table: NewTable, table_type: TableType
) -> None:
    table = new_table(COLUMNS, KEY)
    spec = replace(table.spec, table_type=table_type, partition_by=("note",))
    scattered(table, spec)
    before, there = content(table), files(table, spec)
    assert there.base_files > there.partitions
    last = timeline.last_commit(table.store, spec.prefix)

    commit = cluster.run(table.engines.spark, ClusterSpec(spec, SMALL)).commit
    assert commit is not None
    assert last is not None
    assert commit.checkpoint == last.checkpoint
    assert content(table) == before
    after = files(table, spec)
    assert (after.base_files, after.log_files) == (3, 0)
    assert after.older_files == there.base_files + there.log_files + there.older_files

    assert cluster.run(table.engines.spark, ClusterSpec(spec, SMALL)).commit is None, "one file in each partition"
    # Late changes still lose, newer ones win.
    newer = event(20, "u", 400, note="n0", qty=7)
    table.deliver([event(1, "u", 150, note="n1"), event(2, "u", 160, note=None), newer])
    table.upsert(spec)
    expected = {row[:4] for row in before if row[0] != 20} | {(20, "n0", False, 7)}
    assert {row[:4] for row in content(table)} == expected
    assert table.upsert(spec).commit is None


def test_a_table_of_one_file_or_of_large_files_is_left_alone(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    assert cluster.run(table.engines.spark, ClusterSpec(table.spec)).commit is None, "there is no table yet"
    table.deliver([event(key, "c", 100 + key) for key in range(3)])
    table.upsert()
    assert cluster.run(table.engines.spark, ClusterSpec(table.spec)).commit is None
    assert failed_writes.incomplete_commits(table.store, table.spec.prefix) == []


@pytest.mark.usefixtures("no_small_file_handling")
def test_an_interrupted_clustering_is_rolled_back_by_the_next_writer(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(COLUMNS, KEY)
    spec = replace(table.spec, partition_by=("note",))
    scattered(table, spec)
    before = content(table)

    def lost(_: lease.Lease) -> None:
        raise LeaseLostError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(lease.Lease, "secure", lost)
        with pytest.raises(LeaseLostError):
            cluster.run(table.engines.spark, ClusterSpec(spec, SMALL))
    assert len(failed_writes.incomplete_commits(table.store, spec.prefix)) == 1
    assert content(table) == before
    table.deliver([event(30, "c", 400, note="n0")])
    table.upsert(spec)
    assert failed_writes.incomplete_commits(table.store, spec.prefix) == []
    assert [row for row in content(table) if row[0] != 30] == before
    assert cluster.run(table.engines.spark, ClusterSpec(spec, SMALL)).commit is not None
