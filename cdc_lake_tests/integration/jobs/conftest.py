"""Fixtures of the jobs' tests: engines for all, a table and a topic for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import pytest

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake_tests.integration.jobs.engines import Engines, running_engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

NewTable = Callable[[Sequence[Column], Sequence[str]], LakeTable]


# Not the whole test session: a process has one Spark, and other packages' tests want theirs.
@pytest.fixture(scope="package")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """S3, Kafka and Spark, running."""
    with running_engines(tmp_path_factory.mktemp("stack") / "home", tmp_path_factory.mktemp("spark")) as (found, _):
        yield found


@pytest.fixture(scope="package")
def new_table(engines: Engines) -> NewTable:
    """Makes tables (columns, key), each in a pipeline of its own."""
    numbers = count(1)
    return lambda columns, key: LakeTable(engines, f"table-{next(numbers)}", columns, key)
