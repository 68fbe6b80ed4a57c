"""One whole stack for the tests of the real chain, and pipelines of their own on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from cdc_lake.profile import spark
from cdc_lake_tests.integration.chain.chain_pipeline import Line
from cdc_lake_tests.local_stack import running_stack, scratch_home

NewLine = Callable[..., Line]


@pytest.fixture(scope="package")
def stack() -> Iterator[None]:
    """The stack, up; CDC_LAKE_HOME names it."""
    with scratch_home() as home, running_stack(home), pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDC_LAKE_HOME", str(home))
        try:
            yield
        finally:
            spark().stop()


@pytest.fixture
def new_line(stack: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewLine]:  # noqa: ARG001 - it runs
    """Makes pipelines (name, tables and their further YAML), which end with the test."""
    made: list[Line] = []

    def make(
        name: str,
        tables: Mapping[str, str],
        datasets: Mapping[str, str] | None = None,
        limit: int = 1000,
        text: str | None = None,
    ) -> Line:
        made.append(Line(name, tmp_path_factory.mktemp("defs"), tables, datasets, limit, text))
        return made[-1]

    try:
        yield make
    finally:
        for line in made:
            line.end()
