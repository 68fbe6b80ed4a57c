"""A worker without exactly-once: its first snapshot completes, and losses of its stream are reported.

Tests of test_slot.py run again here, with this module's fixture `pipeline`: all in a full run, two in CI.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.stream import test_slot
from cdc_lake_tests.faults.stream.replication_slot import assert_repaired_by_resnapshot
from cdc_lake_tests.faults.stream.second_worker import SecondWorker
from cdc_lake_tests.faults.stream.small_pipeline import SmallPipeline
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

TESTS_IN_CI = 2

SLOT_TESTS = (
    test_slot.test_a_transaction_open_across_a_resnapshot_is_applied,
    test_slot.test_an_idle_database_does_not_retain_wal,
    test_slot.test_offset_lost_with_the_slot_is_reported_after_the_next_snapshot,
    test_slot.test_offset_lost_without_the_slot_is_reported_before_the_connector_starts,
    test_slot.test_slot_dropped_and_recreated_is_reported,
    test_slot.test_slot_dropped_while_the_connector_is_stopped_is_reported,
    test_slot.test_slot_dropped_while_the_connector_runs_is_reported,
    test_slot.test_slot_invalidated_by_the_server_is_reported,
    test_slot.test_slot_moved_by_another_client_is_reported,
)
# pytest collects these a second time, with the fixture `pipeline` of this module.
globals().update({test.__name__: test for test in drawn(SLOT_TESTS, in_ci=2)})


@pytest.fixture(scope="module")
def worker(stack: NorthwindStack) -> Iterator[SecondWorker]:
    """Run the second worker."""
    made = SecondWorker(stack.cli.stack.home.path, stack.resources["connect"])
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def pipeline(worker: SecondWorker, tmp_path_factory: pytest.TempPathFactory) -> SmallPipeline:
    """Return a materialised pipeline on that worker; early in its first snapshot there is no stored offset."""
    made = SmallPipeline("requested", tmp_path_factory.mktemp("defs"), worker.connect)
    made.materialise()
    return made


def test_a_worker_that_was_stopped_resumes_without_loss(pipeline: SmallPipeline, worker: SecondWorker) -> None:
    for number in range(20):
        pipeline.change(f"before {number}")
    worker.stop()
    pipeline.change("while it is down", [2])
    worker.start()
    pipeline.land_and_compare()


def test_no_watermark_is_ahead_of_a_partition(pipeline: SmallPipeline, count_trials: CountTrials) -> None:
    """Records of different partitions are acknowledged in any order; a watermark waits for all that precede it."""
    found, table = pipeline.resources, pipeline.table
    kafka, where = found["kafka"], location(found["store"])
    sampled: list[tuple[Watermark, Mapping[int, int]]] = []
    written = threading.Event()

    def sample() -> None:
        while not written.is_set():
            stream_continuity.store_acknowledged(pipeline.loaded, found["connect"], pipeline.store)
            spec = table_progress.landing_input(table, kafka, where).spec
            if spec.watermark is not None:
                sampled.append((spec.watermark, spec.ends))

    with ThreadPoolExecutor(1) as sampler:
        sampling = sampler.submit(sample)
        for number in range(20):
            pipeline.change(f"{number} " + "large " * 20_000)
            pipeline.loaded.source_postgres(found["postgres"]).write_heartbeat(pipeline.loaded.name)
        pipeline.barrier()
        written.set()
        sampling.result(timeout=60)
    lsns = {
        partition: {
            message.offset: json.loads(message.value)["__lsn"] for message in kafka.peek(table.topic, partition, 0)
        }
        for partition in kafka.end_offsets(table.topic)
    }
    for watermark, ends in sampled:
        for partition, by_offset in lsns.items():
            missing = [o for o, lsn in by_offset.items() if lsn < watermark.lsn and o >= ends[partition]]
            assert not missing, f"watermark {watermark} is ahead of offsets {missing} of partition {partition}"
    assert len({watermark for watermark, _ in sampled}) > 1, "the watermark did not advance while rows were written"
    assert len([partition for partition, by_offset in lsns.items() if by_offset]) > 1
    count_trials("watermarks compared with all partitions", len(sampled))


def test_a_killed_worker_resumes_or_its_loss_is_reported(
    pipeline: SmallPipeline, worker: SecondWorker, count_trials: CountTrials
) -> None:
    """The slot may be ahead of the worker's last stored offset; then the skipped changes must be reported."""
    for number in range(50):
        pipeline.change(f"before the kill {number}")
    worker.stop(kill=True)
    pipeline.change("while it is down", [4])
    worker.start()
    reported = ""
    try:
        pipeline.land_and_compare()
    except ContractError as error:
        reported = str(error)
    if reported:
        assert f"cdc-lake resnapshot {pipeline.loaded.name}" in reported
        assert_repaired_by_resnapshot(pipeline, count_trials)
    assert pipeline.in_lake() == pipeline.at_source()
