"""A resnapshot that is killed at each of its steps, one after the other; said again, it ends, and all is equal."""

from __future__ import annotations

import signal

import pytest

from cdc_lake.contract.failpoints import REGISTRY
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake_tests.faults import work
from cdc_lake_tests.faults.bench import FAULTS, Bench
from cdc_lake_tests.faults.writer import Died
from cdc_lake_tests.tried import Tried

STEPS = [name for name in REGISTRY if name.startswith("resnapshot.")]
REASON = "it is to be killed"


@pytest.mark.timeout(900)
def test_killed_at_each_step(bench: Bench, tried: Tried) -> None:
    with bench.writer() as writer:
        writer.do(work.reset)
        writer.do(work.materialise, *work.STAGES)
    bench.change(1)
    for number, step in enumerate(STEPS, 2):
        with bench.writer() as writer:
            writer.do(work.arm, f"{step}=kill")
            with pytest.raises(Died) as died:
                writer.do(work.resnapshot, REASON)
            assert died.value.code == -signal.SIGKILL
        bench.change(number)  # a delete among them, while nothing may be streaming
    with bench.writer() as writer:
        said = writer.do(work.resnapshot, REASON)
        checks = writer.do(work.materialise, *work.STAGES)
    assert said[-1] == "epoch 1 is complete"
    epoch = Epochs(bench.store, work.PIPELINE).current()
    assert epoch is not None
    assert (epoch.number, epoch.reason) == (1, REASON)
    assert all(checks.values()), f"red: {[name for name, green in checks.items() if not green]}"
    bench.judge_raw()
    found = bench.verify()
    assert not any(found[fault] for fault in FAULTS)
    assert found["compared"] > 0
    tried("processes killed at a step of a resnapshot", len(STEPS))
