"""The real engines in one stack, killed one by one, all at once and while they come up: `up` mends it, data intact."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from cdc_lake_tests.integration.infra.engine_probes import NAMES, Engines
from infra.local.stack.process import find
from infra.local.stack.stack import Stack


@pytest.mark.parametrize("name", NAMES)
def test_kill_9_and_up(stack: Stack, engines: Engines, name: str) -> None:
    before = {component.name: component.pid for component in stack.status()}
    victim = psutil.Process(before[name])
    victim.kill()
    assert psutil.wait_procs([victim], timeout=10)[1] == []
    assert next(c.state for c in stack.status() if c.name == name) == "dead"
    stack.up(NAMES)
    after = {component.name: component.pid for component in stack.status()}
    assert {other for other in NAMES if before[other] != after[other]} == {name}
    engines.check_one_more_row()


def test_kill_9_of_everything_at_once(stack: Stack, engines: Engines) -> None:
    for found in find(stack.home.path):
        found.process.kill()
    stack.up(NAMES)
    engines.check_one_more_row()


@pytest.mark.parametrize("seconds", [0.7, 2.5, 5.0])
def test_kill_9_of_up_itself(stack: Stack, engines: Engines, seconds: float) -> None:
    stack.down()
    command = [sys.executable, "-m", "cdc_lake.cli.app", "up", "--home", str(stack.home.path)]
    for name in NAMES:
        command += ["--only", name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        try:
            first.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            first.kill()
    stack.up(NAMES)
    assert sorted(f.component for f in find(stack.home.path) if f.main) == sorted(NAMES)
    engines.check_one_more_row()
