"""What the oracle's tests run on: the stack's PostgreSQL, Kafka and S3, and one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from cdc_lake_tests.integration.jobs.engines import running_engines
from cdc_lake_tests.integration.verify.verified_table import Judged
from cdc_lake_tests.local_stack import scratch_home
from resources.postgres.resource import Postgres

NewTable = Callable[[], Judged]


@pytest.fixture(scope="package")
def judged_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewTable]:
    """Makes tables, each with its own pipeline."""
    scratch = tmp_path_factory.mktemp("spark")
    with scratch_home() as home, running_engines(home, scratch, ("postgres", "s3", "kafka")) as (engines, at):
        postgres = Postgres(
            host=at.postgres_host,
            port=at.postgres_port,
            user=at.postgres_user,
            password=at.postgres_password.get_secret_value(),
            database=at.postgres_database,
        )
        numbers = count(1)
        yield lambda: Judged.made(engines, postgres, f"judged_{next(numbers)}")


@pytest.fixture
def judged(judged_tables: NewTable) -> Judged:
    """A table of the test's own."""
    return judged_tables()
