"""kill -9 of an upsert and its JVM right after a chosen request to the store, for both table types.

Readers see the table before or after the batch, never a part of it. The next upsert applies what is missing, once.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from cdc_lake.contract.table import failed_writes
from cdc_lake.jobs.apply import upsert
from cdc_lake_tests.faults.jobs.job_process import Call, JobProcess
from cdc_lake_tests.faults.jobs.killed_job import Place, deliver, expected, kill_at, readers, rows, writes
from cdc_lake_tests.helpers.s3_fault_proxy import FaultProxy
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.local.stack.endpoints import Endpoints

TESTS_IN_CI = 1

PLACES = {
    "the begin of a commit": Place("upsert", "PUT", r"\.inflight"),
    "the first data file": Place("upsert", "PUT", r"\.(parquet|log\.\d+_[\d-]+)", since=r"\.inflight"),
    "the end of a commit": Place("upsert", "PUT", r"\d{17}\.(delta)?commit"),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_an_upsert_that_is_killed_is_applied_once_by_the_next(
    job_stack: tuple[Engines, Endpoints],
    new_table: NewTable,
    place: Place,
    proxy: FaultProxy,
    tmp_path: Path,
    count_trials: CountTrials,
) -> None:
    table = new_table(COLUMNS, KEY)
    for number in range(2):
        deliver(table, number)
        table.upsert()
    before = table.checkpoint()
    deliver(table, 2)
    location = replace(table.engines.location, endpoint_url=proxy.endpoint)
    spec = replace(table.spec, location=location, lease_seconds=2.0)
    process = JobProcess(job_stack[1].home, tmp_path, Call(upsert.run, spec, location, {}))
    try:
        kill_at(place, proxy, process)
        with readers(table, expected(1), expected(2)):
            assert process.wait() == -signal.SIGKILL, f"{writes(proxy)}\n{process.output()[-5000:]}"
    finally:
        process.close()

    complete = place is PLACES["the end of a commit"]
    assert table.checkpoint().manifest == before.manifest + complete
    assert rows(table.by_spark()) == expected(1 + complete)
    deliver(table, 3)
    assert table.upsert(replace(table.spec, lease_wait_seconds=60)).manifests == 2 - complete
    assert rows(table.by_spark()) == expected(3)
    assert rows(table.by_hudi_rs()) == expected(3)
    assert failed_writes.incomplete_commits(table.store, table.spec.prefix) == []
    count_trials("kills of upserts", 1)
