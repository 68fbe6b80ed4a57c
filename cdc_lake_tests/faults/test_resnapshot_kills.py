"""A resnapshot that is killed at each of its steps, one after the other; said again, it ends, and all is equal."""

from __future__ import annotations

import signal

import pytest

from cdc_lake.contract.failpoints import REGISTRY
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake_tests.faults import writer_actions
from cdc_lake_tests.faults.fault_environment import FAULTS, Bench
from cdc_lake_tests.faults.writer_process import Died
from cdc_lake_tests.trial_counts import Tried

STEPS = [name for name in REGISTRY if name.startswith("resnapshot.")]
REASON = "it is to be killed"


@pytest.mark.timeout(900)
def test_killed_at_each_step(bench: Bench, tried: Tried) -> None:
    with bench.writer() as writer:
        writer.do(writer_actions.reset)
        writer.do(writer_actions.materialise, *writer_actions.STAGES)
    bench.change(1)
    for number, step in enumerate(STEPS, 2):
        with bench.writer() as writer:
            writer.do(writer_actions.arm, f"{step}=kill")
            with pytest.raises(Died) as died:
                writer.do(writer_actions.resnapshot, REASON)
            assert died.value.code == -signal.SIGKILL
        bench.change(number)  # a delete among them, while nothing may be streaming
    with bench.writer() as writer:
        said = writer.do(writer_actions.resnapshot, REASON)
        checks = writer.do(writer_actions.materialise, *writer_actions.STAGES)
    assert said[-1] == "epoch 1 is complete"
    epoch = Epochs(bench.store, writer_actions.PIPELINE).current()
    assert epoch is not None
    assert (epoch.number, epoch.reason) == (1, REASON)
    assert all(checks.values()), f"red: {[name for name, green in checks.items() if not green]}"
    bench.judge_raw()
    found = bench.verify()
    assert not any(found[fault] for fault in FAULTS)
    assert found["compared"] > 0
    tried("processes killed at a step of a resnapshot", len(STEPS))
