"""kill -9 of a table service and its JVM right after a chosen request to the store, in each step of the service.

The table's rows do not change: readers see every row during and after the kill, each earlier state is complete or
rejected, and the checkpoint stays. The next write and the next service succeed.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from cdc_lake.contract.table import failed_writes, history, timeline
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake.jobs.maintenance import clean, cluster, compact
from cdc_lake_tests.faults.jobs.job_process import Call, JobProcess, use_options
from cdc_lake_tests.faults.jobs.killed_job import (
    Place,
    Rows,
    deliver,
    expected,
    kill_at,
    readers,
    rows,
    writes,
)
from cdc_lake_tests.helpers.s3_fault_proxy import FaultProxy
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.local.stack.endpoints import Endpoints

TESTS_IN_CI = 2

BATCHES = 4
OPTIONS = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    # Each commit writes its new rows to a new file, so that there is something to cluster.
    "hoodie.parquet.small.file.limit": "0",
}
SERVICES: Mapping[str, Any] = {
    "clean": (clean.run, clean.CleanSpec),
    "compact": (compact.run, compact.CompactSpec),
    "cluster": (cluster.run, cluster.ClusterSpec),
}
_ARCHIVE = r"\.hoodie/history/\.commits_[^/]*"
PLACES = {
    "the plan of a clean": Place("clean", "PUT", r"\.clean\.requested"),
    "the first deleted file": Place("clean", "DELETE", r"\.(parquet|log\.\d+_[\d-]+)", since=r"\.clean\.inflight"),
    "the end of a clean": Place("clean", "PUT", r"\d{17}\.clean"),
    "the archive": Place("clean", "PUT", _ARCHIVE),
    "the first archived commit": Place("clean", "DELETE", r"\.hoodie/\d{17}\.[^/]*", since=_ARCHIVE),
    "the plan of a compaction": Place("compact", "PUT", r"\.compaction\.requested"),
    "a compacted file": Place("compact", "PUT", r"\.parquet"),
    "the end of a compaction": Place("compact", "PUT", r"\d{17}\.commit"),
    "the plan of a clustering": Place("cluster", "PUT", r"\.replacecommit\.requested"),
    "a clustered file": Place("cluster", "PUT", r"\.parquet"),
    "the end of a clustering": Place("cluster", "PUT", r"\d{17}\.replacecommit"),
}
CASES = [
    (table_type, name)
    for table_type in get_args(TableType)
    for name, place in PLACES.items()
    if (table_type, place.job) != ("cow", "compact")
]


@pytest.fixture
def table(job_engines: Engines, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LakeTable:
    """Return a table with four batches, of which each changes the same rows and adds one.

    For a clean, its commits are renamed to be two hours older, so that there are files to delete. Not for the others:
    Hudi selects the states of a merge-on-read table by the store's modification times, which cannot be changed.
    """
    monkeypatch.setattr(HudiTable, "options", use_options(OPTIONS))
    table_type, name = request.param
    found = LakeTable(job_engines, f"killed-{table_type}-{list(PLACES).index(name)}", COLUMNS, KEY, table_type)
    for number in range(BATCHES):
        deliver(found, number)
        found.upsert()
        if found.table_type == "mor" and number == BATCHES // 2:
            assert compact.run(found.engines.spark, compact.CompactSpec(found.spec)).commit is not None
    if PLACES[name].job == "clean":
        found.make_older(timedelta(hours=2))
    return found


def require_earlier_states(table: LakeTable, states: Mapping[str, Rows]) -> None:
    """Require that each state in history.readable() is complete, and that the newest state is one of them."""
    readable = [instant for instant in history.readable(table.store, table.spec.prefix) if instant in states]
    assert max(states) in readable
    reader = table.engines.spark.read.format("hudi")
    for instant in readable:
        found = reader.option("as.of.instant", instant).load(table.spec.uri()).collect()
        assert rows([row.asDict() for row in found]) == states[instant], instant


@pytest.mark.parametrize(
    ("table", "place"),
    [(case, PLACES[case[1]]) for case in CASES],
    ids=[f"{table_type}: {name}" for table_type, name in CASES],
    indirect=["table"],
)
def test_a_service_that_is_killed_changes_no_row_and_is_continued(
    job_stack: tuple[Engines, Endpoints],
    table: LakeTable,
    place: Place,
    proxy: FaultProxy,
    tmp_path: Path,
    count_trials: CountTrials,
) -> None:
    instants = [each for each in history.commits(table.store, table.spec.prefix) if _applies(table, each)]
    states = {instant: expected(number) for number, instant in enumerate(instants)}
    checkpoint = table.checkpoint()
    job, make_spec = SERVICES[place.job]
    location = replace(table.engines.location, endpoint_url=proxy.endpoint)
    spec = make_spec(replace(table.spec, location=location, lease_seconds=2.0))
    process = JobProcess(job_stack[1].home, tmp_path, Call(job, spec, location, OPTIONS))
    try:
        kill_at(place, proxy, process)
        with readers(table, expected(BATCHES - 1)):
            assert process.wait() == -signal.SIGKILL, f"{writes(proxy)}\n{process.output()[-5000:]}"
    finally:
        process.close()

    assert table.checkpoint() == checkpoint
    assert rows(table.by_spark()) == expected(BATCHES - 1)
    require_earlier_states(table, states)
    patient = replace(table.spec, lease_wait_seconds=60)
    deliver(table, BATCHES)
    assert table.upsert(patient).manifests == 1
    assert rows(table.by_spark()) == expected(BATCHES)
    job(table.engines.spark, make_spec(patient))
    assert table.checkpoint().manifest == checkpoint.manifest + 1
    assert rows(table.by_spark()) == expected(BATCHES)
    assert failed_writes.incomplete_commits(table.store, table.spec.prefix) == []
    assert failed_writes.pending_compactions(table.store, table.spec.prefix) == []
    assert unfinished_cleans(table) == set()
    assert rows(table.by_hudi_rs()) == expected(BATCHES)
    count_trials("kills of table services", 1)


def _applies(table: LakeTable, instant: str) -> bool:
    """Return whether a commit has applied a manifest."""
    return timeline.commit_at(table.store, table.spec.prefix, instant).raw_bytes is not None


def unfinished_cleans(table: LakeTable) -> set[str]:
    """Return the instants of cleans that were begun and not completed."""
    folder = f"{table.spec.prefix}.hoodie/"
    names = {item.key.removeprefix(folder) for item in table.store.scan(folder, recursive=False)}
    begun = {name[:17] for name in names if ".clean." in name}
    return begun - {name[:17] for name in names if name.endswith(".clean")}
