"""Fixtures of the jobs' tests: shared engines, and a factory of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import pytest

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake_tests.integration.jobs.engines import Engines, running_engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from infra.local.stack.endpoints import Endpoints

NewTable = Callable[[Sequence[Column], Sequence[str]], LakeTable]


# Not session scope: a process can have one Spark session, and other packages' tests start their own.
@pytest.fixture(scope="package")
def job_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engines, Endpoints]]:
    """Run S3, Kafka and Spark."""
    with running_engines(tmp_path_factory.mktemp("stack") / "home", tmp_path_factory.mktemp("spark")) as found:
        yield found


@pytest.fixture(scope="package")
def job_engines(job_stack: tuple[Engines, Endpoints]) -> Engines:
    """Return S3, Kafka and Spark."""
    return job_stack[0]


@pytest.fixture(scope="package")
def new_table(job_engines: Engines) -> NewTable:
    """Return a factory of tables (columns, key), each in its own pipeline."""
    numbers = count(1)
    return lambda columns, key: LakeTable(job_engines, f"table-{next(numbers)}", columns, key)
