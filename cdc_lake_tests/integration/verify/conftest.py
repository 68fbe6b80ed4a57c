"""Fixtures of the verification tests: PostgreSQL, Kafka and S3 of a stack, and one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from cdc_lake_tests.helpers.local_stack import scratch_home, source_postgres
from cdc_lake_tests.integration.jobs.engines import running_engines
from cdc_lake_tests.integration.verify.verified_table import VerifiedTable

NewTable = Callable[[], VerifiedTable]


@pytest.fixture(scope="package")
def verified_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewTable]:
    """Return a factory of tables, each with its own pipeline."""
    scratch = tmp_path_factory.mktemp("spark")
    with scratch_home() as home, running_engines(home, scratch, ("postgres", "s3", "kafka")) as (engines, at):
        postgres = source_postgres(at)
        numbers = count(1)
        yield lambda: VerifiedTable.created(engines, postgres, f"verified_{next(numbers)}")


@pytest.fixture
def verified_table(verified_tables: NewTable) -> VerifiedTable:
    """Return a new table."""
    return verified_tables()
