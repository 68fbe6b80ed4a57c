"""Fixtures of the fault tests: one whole stack with the sample database, started by the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cdc_lake.samples.northwind import loader
from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.faults.stream.small_pipeline import SmallPipeline
from cdc_lake_tests.faults.writers.writer_process import restore_signal_handlers
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.helpers.local_stack import scratch_home
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome


@pytest.fixture(scope="package")
def pipeline(
    stack: NorthwindStack,  # noqa: ARG001 - the stack must run
    tmp_path_factory: pytest.TempPathFactory,
) -> SmallPipeline:
    """Return a pipeline with one small table, materialised up to the lake."""
    made = SmallPipeline("small", tmp_path_factory.mktemp("defs"))
    made.materialise()
    return made


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NorthwindStack]:
    """Run the stack with the sample loaded; nothing of the pipeline is created yet."""
    restore_signal_handlers()
    own = ("CDC_LAKE_", "DAGSTER_HOME")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    with scratch_home() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDC_LAKE_HOME", str(home))  # for the checks, which use the stack from this process
        cli = CommandLine(Stack(StackHome(home)), {**inherited, "CDC_LAKE_HOME": str(home)})
        try:
            cli.run("cdc-lake", "up")
            made = NorthwindStack(cli, tmp_path_factory.mktemp("faults"))
            loader.load(made.login(), None)
            yield made
        finally:
            cli.run("cdc-lake", "down")
