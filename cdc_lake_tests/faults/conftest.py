"""One whole stack with the sample database for all tests of faults, started by the command line as people do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cdc_lake.samples import loader
from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.faults.small_pipeline import Stall
from cdc_lake_tests.faults.writer_process import answer_signals
from cdc_lake_tests.local_stack import scratch_home
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome


@pytest.fixture(scope="package")
def stall(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Stall:
    """A pipeline with one small table, made and in the lake."""
    assert bench.cli
    made = Stall("stall", tmp_path_factory.mktemp("defs"))
    made.materialise()
    return made


@pytest.fixture(scope="package")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The stack, up and loaded; nothing of the pipeline is made yet."""
    answer_signals()
    own = ("CDC_LAKE_", "DAGSTER_HOME")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    with scratch_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDC_LAKE_HOME", str(home))  # for the judge, which asks the stack from this process
        cli = CommandLine(Stack(StackHome(home)), {**inherited, "CDC_LAKE_HOME": str(home)})
        try:
            cli.run("cdc-lake", "up")
            made = Bench(cli, tmp_path_factory.mktemp("faults"))
            loader.load(made.login(), None)
            yield made
        finally:
            cli.run("cdc-lake", "down")
