"""A resnapshot that is killed at its steps completes when it is repeated, and lake and source are equal.

CI draws two of the steps, a full run has all.
"""

from __future__ import annotations

import signal

import pytest

from cdc_lake.contract.failpoints import REGISTRY
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake_tests.faults.northwind_stack import FAULTS, NorthwindStack
from cdc_lake_tests.faults.writers import writer_actions
from cdc_lake_tests.faults.writers.writer_process import Died
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

STEPS = drawn((name for name in REGISTRY if name.startswith("resnapshot.")), in_ci=2)
REASON = "a test kills it"


@pytest.mark.timeout(900)
def test_a_resnapshot_killed_at_its_steps_completes(stack: NorthwindStack, count_trials: CountTrials) -> None:
    with stack.writer() as writer:
        writer.do(writer_actions.reset)
        writer.do(writer_actions.materialise, *writer_actions.STAGES)
    stack.change(1)
    for number, step in enumerate(STEPS, 2):
        with stack.writer() as writer:
            writer.do(writer_actions.arm, f"{step}=kill")
            with pytest.raises(Died) as died:
                writer.do(writer_actions.resnapshot, REASON)
            assert died.value.code == -signal.SIGKILL
        stack.change(number)  # with a delete, perhaps while nothing is streaming
    with stack.writer() as writer:
        messages = writer.do(writer_actions.resnapshot, REASON)
        checks = writer.do(writer_actions.materialise, *writer_actions.STAGES)
    assert messages[-1] == "epoch 1 is complete"
    epoch = Epochs(stack.store, writer_actions.PIPELINE).current()
    assert epoch is not None
    assert (epoch.number, epoch.reason) == (1, REASON)
    assert all(checks.values()), f"red: {[name for name, green in checks.items() if not green]}"
    stack.check_raw()
    found = stack.verify()
    assert not any(found[fault] for fault in FAULTS)
    assert found["compared"] > 0
    count_trials("processes killed at a step of a resnapshot", len(STEPS))
