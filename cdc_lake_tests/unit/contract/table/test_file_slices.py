"""Live and older files of a table, from a listing."""

from __future__ import annotations

from cdc_lake.contract.table import file_slices
from cdc_lake.contract.table.file_slices import Files
from cdc_lake_tests.helpers.memory_store import MemoryStore

TABLE = "lake/shop/orders/"
ONE, TWO = "80af41f8-90bc-4f5b-a328-a3c8a3d031c0-0", "dc279921-1b1a-4f12-8fa2-6c843dc94f14-0"
OLD, FIRST, SECOND, RUNNING = (f"2026112510{minute:02d}00000" for minute in range(4))


def test_the_newest_base_file_of_each_group_is_live_and_so_are_its_log_files() -> None:
    store = MemoryStore()
    names = {
        f"a=1/{ONE}_0-24-18_{OLD}.parquet": 1,  # its commit is archived
        f"a=1/{ONE}_0-25-19_{SECOND}.parquet": 10,
        f"a=1/.{ONE}_{OLD}.log.1_0-61-47": 100,
        f"a=1/.{ONE}_{SECOND}.log.1_0-62-47": 1_000,
        f"a=2/{TWO}_1-24-18_{FIRST}.parquet": 10_000,
        f"a=2/{TWO}_1-29-18_{RUNNING}.parquet": 100_000,  # not committed
        f"a=2/.{TWO}_{RUNNING}.log.1_0-63-47": 1_000_000,  # after a compaction that is planned
        "a=2/.hoodie_partition_metadata": 7,
        f".hoodie/{FIRST}.commit": 7,
    }
    for name, size in names.items():
        store.write(f"{TABLE}{name}", b"x" * size)
    assert file_slices.count(store.scan(TABLE), TABLE, {FIRST, SECOND}, FIRST) == Files(
        base_files=2,
        base_bytes=10_010,
        log_files=2,
        log_bytes=1_001_000,
        older_files=2,
        older_bytes=101,
        partitions=2,
    )


def test_all_files_of_a_replaced_group_are_older() -> None:
    store = MemoryStore()
    for name in (
        f"a=1/{ONE}_0-24-18_{FIRST}.parquet",
        f"a=1/.{ONE}_{FIRST}.log.1_0-61-47",
        f"a=2/{ONE}_0-24-18_{FIRST}.parquet",
        f"a=1/{TWO}_0-25-19_{SECOND}.parquet",
    ):
        store.write(f"{TABLE}{name}", b"x")
    found = file_slices.count(store.scan(TABLE), TABLE, {FIRST, SECOND}, FIRST, {("a=1", ONE)})
    assert (found.base_files, found.log_files, found.older_files) == (2, 0, 2)


def test_a_table_without_files_has_none() -> None:
    assert file_slices.count([], TABLE, [], "") == Files(0, 0, 0, 0, 0, 0, 0)
