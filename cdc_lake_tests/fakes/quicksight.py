"""QuickSight's local API over an engine in memory, served over HTTP: boto3 talks to it as to AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import boto3
import botocore.session
from botocore.validate import ParamValidator
from werkzeug.serving import make_server

from cdc_lake_tests.aws_api.quicksight.api import QuickSightApi
from cdc_lake_tests.aws_api.quicksight.ingestions import Ingestions
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT, Objects
from cdc_lake_tests.aws_api.rest_protocol import Operation, RestService
from cdc_lake_tests.fakes.server import KEYS
from infra.local.aws_api.athena.result_columns import Column
from infra.local.aws_api.athena.trino_engine import Outcome, Progress, QueryFailed
from infra.local.aws_api.errors import AwsError
from infra.local.aws_api.server import AwsServices

REGION = "us-east-1"
OWNER = f"arn:aws:quicksight:{REGION}:{ACCOUNT}:group/default/analysts"
SESSION = boto3.Session(
    region_name=REGION, aws_access_key_id="key", aws_secret_access_key="secret"
)  # one for all: it reads the service's model once, which takes long
_MODEL = botocore.session.get_session().get_service_model("quicksight")


@dataclass
class MemoryEngine:
    """Gives the same rows for any SQL, or fails; it waits while `held`."""

    columns: dict[str, str] = field(default_factory=dict)
    """Each column's name with Trino's raw type."""
    rows: list[list[Any]] = field(default_factory=list)
    failure: QueryFailed | None = None
    asked: list[str] = field(default_factory=list)
    free: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.free.set()

    def run(
        self, sql: str, *, catalog: str, schema: str | None, progress: Progress, stopped: Callable[[], bool]
    ) -> Outcome:
        """See Trino."""
        assert (progress.elapsed_ms, stopped()) == (0, False)
        assert (catalog, schema) == ("awsdatacatalog", None)
        self.asked.append(sql)
        assert self.free.wait(5)
        if self.failure is not None:
            raise self.failure
        told = [Column(name, {"rawType": kind, "arguments": []}) for name, kind in self.columns.items()]
        return Outcome(told, iter(self.rows), None)


@dataclass(frozen=True)
class Served:
    """The API at an address."""

    url: str
    engine: MemoryEngine
    calls: list[str]
    """The operations that were asked for, oldest first."""
    script: dict[str, list[AwsError]]
    """By operation: the errors that its next calls end with."""
    objects: Objects

    def changes(self) -> list[str]:
        """The calls so far that change something; forgets them."""
        found = [name for name in self.calls if not name.startswith(("Describe", "List"))]
        self.calls.clear()
        return found

    def client(self) -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
        """boto3's client of it."""
        return SESSION.client("quicksight", endpoint_url=self.url)


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """The API, for the length of the block; its records are in the folder."""
    objects, engine = Objects(folder / "quicksight.json", REGION), MemoryEngine()
    ingestions = Ingestions(objects, engine)
    calls: list[str] = []
    script: dict[str, list[AwsError]] = {}

    def scripted(name: str, operation: Operation) -> Operation:
        def answer(request: dict[str, Any]) -> dict[str, Any]:
            calls.append(name)
            if script.get(name):
                raise script[name].pop(0)
            told = operation(request)
            shape = _MODEL.operation_model(name).output_shape
            assert shape is not None
            report = ParamValidator().validate(told, shape)
            assert not report.has_errors(), report.generate_report()
            return told

        return answer

    offered = QuickSightApi(objects, ingestions).operations
    operations = {name: scripted(name, operation) for name, operation in offered.items()}
    service = RestService("quicksight", operations, "InvalidParameterValueException")
    gate = AwsServices({"quicksight": service}, REGION, KEYS)
    server = make_server("127.0.0.1", 0, gate, threaded=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{server.server_port}", engine, calls, script, objects)
    finally:
        engine.free.set()
        ingestions.close()
        server.shutdown()
        thread.join()
        server.server_close()
