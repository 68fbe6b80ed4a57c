"""Fixtures of the fault tests of the jobs; they use the engines of the jobs' integration tests.

In CI the tables of all these tests are of one type, which the seed draws; in FULL each test runs with both types.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake_tests.faults.jobs.paused_writer import pause_writer
from cdc_lake_tests.helpers.s3_fault_proxy import FaultProxy, fault_proxy
from cdc_lake_tests.integration.jobs.conftest import NewTable, job_engines, job_stack
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn

_NUMBERS = count(1)  # not in the fixture, which pytest creates again when it returns to a type

__all__ = ["job_engines", "job_stack", "new_table", "pause_writer"]


@pytest.fixture(scope="package", params=drawn(("cow", "mor"), in_ci=1))
def table_type(request: pytest.FixtureRequest) -> TableType:
    """Return the type of the tables."""
    found: TableType = request.param
    return found


@pytest.fixture(scope="package")
def new_table(job_engines: Engines, table_type: TableType) -> NewTable:
    """Return a factory of tables (columns, key), each in its own pipeline."""
    return lambda columns, key: LakeTable(job_engines, f"{table_type}-table-{next(_NUMBERS)}", columns, key, table_type)


@pytest.fixture
def proxy(job_engines: Engines) -> Iterator[FaultProxy]:
    """Run a proxy in front of the store."""
    with fault_proxy(job_engines.location.endpoint_url or "") as found:
        yield found
