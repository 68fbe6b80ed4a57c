"""Components of a stack are killed one by one, all at once, and while they start: `up` repairs it without data loss."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from cdc_lake_tests.integration.infra.engine_probes import NAMES, EngineClients
from infra.local.stack.process import find
from infra.local.stack.stack import Stack

TESTS_IN_CI = 3


@pytest.mark.parametrize("name", NAMES)
def test_up_restarts_a_killed_component(filled_stack: Stack, engine_clients: EngineClients, name: str) -> None:
    before = {component.name: component.pid for component in filled_stack.status()}
    victim = psutil.Process(before[name])
    victim.kill()
    assert psutil.wait_procs([victim], timeout=10)[1] == []
    assert next(c.state for c in filled_stack.status() if c.name == name) == "dead"
    filled_stack.up(NAMES)
    after = {component.name: component.pid for component in filled_stack.status()}
    assert {other for other in NAMES if before[other] != after[other]} == {name}
    engine_clients.check_one_more_row()


def test_up_restarts_all_killed_components(filled_stack: Stack, engine_clients: EngineClients) -> None:
    for found in find(filled_stack.home.path):
        found.process.kill()
    filled_stack.up(NAMES)
    engine_clients.check_one_more_row()


@pytest.mark.parametrize("seconds", [0.7, 2.5, 5.0])
def test_up_completes_an_up_that_was_killed(filled_stack: Stack, engine_clients: EngineClients, seconds: float) -> None:
    filled_stack.down()
    command = [sys.executable, "-m", "cdc_lake.cli.app", "up", "--home", str(filled_stack.home.path)]
    for name in NAMES:
        command += ["--only", name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        try:
            first.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            first.kill()
    filled_stack.up(NAMES)
    assert sorted(f.component for f in find(filled_stack.home.path) if f.main) == sorted(NAMES)
    engine_clients.check_one_more_row()
