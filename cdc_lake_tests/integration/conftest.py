"""Fixtures for several packages of integration tests: engines that take long to start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack import Stack
from resources.athena import Athena

QUERY_COMPONENTS = ("s3", "trino", "aws")


@dataclass(frozen=True)
class QueryStack:
    """A stack of S3, Trino and the local AWS API."""

    stack: Stack
    at: Endpoints

    def athena(self, database: str, **more: Any) -> Athena:  # noqa: ANN401 - the resource's own fields
        """Return a client of the Athena emulator for a database."""
        return Athena(
            endpoint_url=self.at.aws_endpoint,
            access_key=self.at.s3_access_key,
            secret_key=self.at.s3_secret_key.get_secret_value(),
            database=database,
            output_location=f"s3://{self.at.bucket}/athena/",
            poll_seconds=0.05,
            **more,
        )

    def repair(self) -> None:
        """Restart killed components."""
        self.stack.up(QUERY_COMPONENTS)

    def pid(self, component: str) -> int:
        """Return the process id of a component."""
        found = next(each.pid for each in self.stack.status() if each.name == component)
        assert found is not None
        return found

    def kill(self, component: str) -> None:
        """Kill a component's process and wait until it is gone."""
        process = psutil.Process(self.pid(component))
        process.kill()
        psutil.wait_procs([process], timeout=10)


@pytest.fixture(scope="package")
def query_stack() -> Iterator[QueryStack]:
    """Run the engines behind Athena."""
    with scratch_home() as home, running_stack(home, QUERY_COMPONENTS) as stack:
        yield QueryStack(stack, load_endpoints(home))
