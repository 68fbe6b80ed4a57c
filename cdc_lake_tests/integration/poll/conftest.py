"""Fixtures: PostgreSQL, Kafka, S3 and Spark, and a factory of polled pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from cdc_lake_tests.helpers.local_stack import scratch_home, source_postgres
from cdc_lake_tests.integration.jobs.engines import running_engines
from cdc_lake_tests.integration.poll.polled_pipeline import PolledPipeline

NewPolled = Callable[..., PolledPipeline]


@pytest.fixture(scope="package")
def new_polled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewPolled]:
    """Return a factory of pipelines: name, YAML of the tables, SQL files."""
    scratch = tmp_path_factory.mktemp("spark")
    with scratch_home() as home, running_engines(home, scratch, ("postgres", "s3", "kafka")) as (engines, at):
        postgres = source_postgres(at)

        def make(name: str, tables: str, files: Mapping[str, str] | None = None) -> PolledPipeline:
            folder = tmp_path_factory.mktemp("defs")
            return PolledPipeline.created(name, folder, engines, postgres, tables, files or {})

        yield make
