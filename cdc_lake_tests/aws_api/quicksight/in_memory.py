"""QuickSight over a fake of Trino, for unit tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import boto3

from cdc_lake_tests.aws_api.quicksight.ingestions import Ingestions
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT, Objects
from cdc_lake_tests.aws_api.quicksight.service import quicksight_operations, quicksight_service
from cdc_lake_tests.aws_api.rest_protocol import Operation
from cdc_lake_tests.fakes.server import serving
from infra.local.aws_api.athena.result_columns import Column
from infra.local.aws_api.athena.trino_engine import Outcome, Progress, QueryFailed
from infra.local.aws_api.errors import AwsError

REGION = "us-east-1"
OWNER = f"arn:aws:quicksight:{REGION}:{ACCOUNT}:group/default/analysts"
SESSION = boto3.Session(region_name=REGION, aws_access_key_id="key", aws_secret_access_key="secret")
"""One session for all tests: it reads the service's model once, which takes long."""


@dataclass
class FakeTrino:
    """Returns the same rows for any SQL, or fails."""

    columns: dict[str, str] = field(default_factory=dict)
    """By the name of a column: Trino's raw type."""
    rows: list[list[Any]] = field(default_factory=list)
    failure: QueryFailed | None = None
    queries: list[str] = field(default_factory=list)
    """The statements, the oldest first."""
    free: Event = field(default_factory=Event)
    """Statements wait until it is set."""

    def run(
        self, sql: str, *, catalog: str, schema: str | None, progress: Progress, stopped: Callable[[], bool]
    ) -> Outcome:
        """See Trino."""
        assert (catalog, schema, progress.elapsed_ms, stopped()) == ("awsdatacatalog", None, 0, False)
        self.queries.append(sql)
        assert self.free.wait(5)
        if self.failure is not None:
            raise self.failure
        columns = [Column(name, {"rawType": kind, "arguments": []}) for name, kind in self.columns.items()]
        return Outcome(columns, iter(self.rows), None)


@dataclass(frozen=True)
class Served:
    """QuickSight at a URL."""

    url: str
    engine: FakeTrino
    objects: Objects
    ingestions: Ingestions
    calls: list[str]
    """The operations that were called, the oldest first."""
    script: dict[str, list[AwsError]]
    """By operation: the errors of its next calls."""

    def changes(self) -> list[str]:
        """Return the calls so far that change something, and forget all calls."""
        found = [name for name in self.calls if not name.startswith(("Describe", "List"))]
        self.calls.clear()
        return found

    def client(self) -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
        """Return boto3's client."""
        return SESSION.client("quicksight", endpoint_url=self.url)


@contextmanager
def served() -> Iterator[Served]:
    """Serve QuickSight."""
    objects, engine = Objects(REGION), FakeTrino()
    engine.free.set()
    ingestions = Ingestions(objects, engine)
    calls: list[str] = []
    script: dict[str, list[AwsError]] = {}

    def scripted(name: str, operation: Operation) -> Operation:
        def answer(request: dict[str, Any]) -> dict[str, Any]:
            calls.append(name)
            if script.get(name):
                raise script[name].pop(0)
            return operation(request)

        return answer

    operations = quicksight_operations(objects, ingestions)
    service = quicksight_service({name: scripted(name, each) for name, each in operations.items()})
    with serving({"quicksight": service}) as url:
        try:
            yield Served(url, engine, objects, ingestions, calls, script)
        finally:
            engine.free.set()
            ingestions.close()
