"""The stream of a worker without exactly-once: its first snapshot goes through, and its losses are found.

The tests of test_slot.py that judge slot and offset run here again, on that worker.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.second_worker import SecondWorker
from cdc_lake_tests.faults.small_pipeline import Stall
from cdc_lake_tests.faults.test_slot import (
    test_connect_has_lost_its_offset_and_the_slot_is_there,  # noqa: F401 - run here too
    test_moved_on_by_somebody,  # noqa: F401 - run here too
)


@pytest.fixture(scope="module")
def worker(bench: Bench) -> Iterator[SecondWorker]:
    """The second worker, running."""
    made = SecondWorker(bench.cli.stack.home.path, bench.resources["connect"])
    made.start()
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def stall(worker: SecondWorker, tmp_path_factory: pytest.TempPathFactory) -> Stall:
    """A pipeline on that worker, made and in the lake: its first snapshot has no stored offset for a while."""
    made = Stall("requested", tmp_path_factory.mktemp("defs"), worker.connect)
    made.materialise()
    return made


def test_a_worker_that_ends_in_good_order_goes_on(stall: Stall, worker: SecondWorker) -> None:
    for number in range(20):
        stall.change(f"before {number}")
    worker.end()
    stall.change("while it is down", [2])
    worker.start()
    stall.carry()
