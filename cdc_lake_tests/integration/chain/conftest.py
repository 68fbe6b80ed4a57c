"""Fixtures: one whole stack, and a factory of pipelines on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from cdc_lake.profile import spark
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline, Formats
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
    """Return a factory of pipelines (name, tables and their further YAML), which are stopped after the test."""
    made: list[ChainPipeline] = []

    def make(
        name: str,
        tables: Mapping[str, str],
        datasets: Mapping[str, str] | None = None,
        limit: int = 1000,
        targets: Sequence[str] = (),
        text: str | None = None,
        formats: Formats = ("json", "json"),
        refined: Mapping[str, str] | None = None,
        more: str = "",
    ) -> ChainPipeline:
        folder = tmp_path_factory.mktemp("defs")
        made.append(ChainPipeline(name, folder, tables, datasets, limit, targets, text, formats, refined, more))
        return made[-1]

    try:
        yield make
    finally:
        for pipeline in made:
            pipeline.stop()
