"""Fixtures: PostgreSQL, Kafka, S3 and Spark, and a factory of polled pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from cdc_lake_tests.aws_api.emr.job_resources import EmrResources
from cdc_lake_tests.aws_api.served import aws_api
from cdc_lake_tests.helpers.local_stack import scratch_home, source_postgres
from cdc_lake_tests.integration.jobs.engines import Engines, running_engines
from cdc_lake_tests.integration.poll.polled_pipeline import PolledPipeline
from infra.local.stack.endpoints import Endpoints

NewPolled = Callable[..., PolledPipeline]


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engines, Endpoints]]:
    """Run PostgreSQL, Kafka, S3 and Spark."""
    scratch = tmp_path_factory.mktemp("spark")
    with scratch_home() as home, running_engines(home, scratch, ("postgres", "s3", "kafka")) as found:
        yield found


@pytest.fixture(scope="package")
def new_polled(running: tuple[Engines, Endpoints], tmp_path_factory: pytest.TempPathFactory) -> NewPolled:
    """Return a factory of pipelines: name, YAML of the tables, SQL files."""
    engines, at = running

    def make(name: str, tables: str, files: Mapping[str, str] | None = None) -> PolledPipeline:
        folder = tmp_path_factory.mktemp("defs")
        return PolledPipeline.created(name, folder, engines, source_postgres(at), tables, files or {})

    return make


@pytest.fixture
def emr(running: tuple[Engines, Endpoints], tmp_path: Path) -> Iterator[EmrResources]:
    """Serve the emulated EMR APIs over the stack."""
    engines, at = running
    with aws_api(at, tmp_path) as api:
        yield EmrResources(api.url, at, engines.location)
