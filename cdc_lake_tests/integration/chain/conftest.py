"""Fixtures: one whole stack, and a factory of pipelines on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cdc_lake.profile import spark
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from infra.local.components import needed_components

NewPipeline = Callable[..., ChainPipeline]
HASH_SALT = "a-salt-for-tests-0123456789"


@pytest.fixture(scope="package")
def chain_stack() -> Iterator[None]:
    """Run the stack; CDC_LAKE_HOME names its folder, and columns can be hashed."""
    with (
        scratch_home() as home,
        running_stack(home, needed_components(registry=True)),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("CDC_LAKE_HOME", str(home))
        patch.setenv("CDC_LAKE_HASH_SALT", HASH_SALT)
        try:
            yield
        finally:
            spark().stop()


@pytest.fixture
def new_pipeline(chain_stack: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewPipeline]:  # noqa: ARG001 - the stack must run
    """Return a factory of pipelines (name, and the arguments of ChainPipeline), which are stopped after the test."""
    made: list[ChainPipeline] = []

    def make(name: str, *arguments: Any, **settings: Any) -> ChainPipeline:  # noqa: ANN401 - those of ChainPipeline
        made.append(ChainPipeline(name, tmp_path_factory.mktemp("defs"), *arguments, **settings))
        return made[-1]

    try:
        yield make
    finally:
        for pipeline in made:
            pipeline.stop()
