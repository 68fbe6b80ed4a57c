"""The stream of a worker without exactly-once: its first snapshot goes through, and its losses are found.

The tests of test_slot.py that judge slot and offset run here again, on that worker.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.second_worker import SecondWorker
from cdc_lake_tests.faults.small_pipeline import Stall
from cdc_lake_tests.faults.test_slot import (
    mended,
    test_a_transaction_is_open_across_a_resnapshot,  # noqa: F401 - run here too
    test_an_idle_database_does_not_hold_back_wal,  # noqa: F401 - run here too
    test_connect_has_lost_its_offset,  # noqa: F401 - run here too
    test_connect_has_lost_its_offset_and_the_slot_is_there,  # noqa: F401 - run here too
    test_dropped_and_made_again,  # noqa: F401 - run here too
    test_dropped_while_the_connector_is_stopped,  # noqa: F401 - run here too
    test_dropped_while_the_connector_runs,  # noqa: F401 - run here too
    test_invalidated,  # noqa: F401 - run here too
    test_moved_on_by_somebody,  # noqa: F401 - run here too
)
from cdc_lake_tests.trial_counts import Tried


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


def test_a_killed_worker_goes_on_or_the_loss_is_reported(stall: Stall, worker: SecondWorker, tried: Tried) -> None:
    """The slot may be ahead of the offset that the worker stored last: then nothing may be skipped silently."""
    for number in range(50):
        stall.change(f"before the kill {number}")
    worker.end(kill=True)
    stall.change("while it is down", [4])
    worker.start()
    reported = ""
    try:
        stall.carry()
    except ContractError as error:
        reported = str(error)
    if reported:
        assert f"cdc-lake resnapshot {stall.flow.name}" in reported
        mended(stall, tried)
    assert stall.in_lake() == stall.at_source()
