"""MSK Connect's local API over a worker in memory, served over HTTP: boto3 talks to it as to AWS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from moto.cloudwatch.models import cloudwatch_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from cdc_lake_tests.fakes.server import SIGNED, listening
from infra.local.aws_endpoint.connect_worker import RefusedError, WorkerStatus
from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.gate import Application, Gate
from infra.local.aws_endpoint.kafkaconnect import KafkaConnectApi
from infra.local.aws_endpoint.kafkaconnect_metrics import Monitoring
from infra.local.aws_endpoint.kafkaconnect_state import ACCOUNT, Records
from infra.local.aws_endpoint.rest_json import RestJson

REGION = "us-east-1"
_SESSION = boto3.Session()  # it reads the service's model once


@dataclass
class MemoryWorker:
    """Runs whatever it is given; a configuration with `fail` has a task that FAILED, one with `refuse` is not taken."""

    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    """Connectors with a task that failed later."""
    paused: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    down: bool = False

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """See Worker."""
        self.asked.append(f"put {name}")
        self._answer()
        if "refuse" in config:
            raise RefusedError(config["refuse"])
        self.configs[name] = dict(config)

    def status(self, name: str) -> WorkerStatus | None:
        """See Worker."""
        self._answer()
        config = self.configs.get(name)
        if config is None:
            return None
        if "fail" in config:
            return WorkerStatus("RUNNING", ("FAILED",), config["fail"])
        if name in self.failed:
            return WorkerStatus("RUNNING", ("FAILED",), "it failed")
        state = "PAUSED" if name in self.paused else "RUNNING"
        return WorkerStatus(state, (state,))

    def ask(self, name: str, action: str) -> None:
        """See Worker."""
        self.asked.append(f"{action} {name}")
        if action == "pause":
            self.paused.add(name)
        elif action == "resume":
            self.paused.discard(name)
        else:
            self.configs[name].pop("fail", None)
            self.failed.discard(name)

    def delete(self, name: str) -> None:
        """See Worker."""
        self.asked.append(f"delete {name}")
        self.configs.pop(name, None)

    def _answer(self) -> None:
        if self.down:
            raise AwsError("ServiceUnavailableException", "The Connect worker does not answer.", status=503)


@dataclass(frozen=True)
class Served:
    """The API at an address."""

    url: str
    worker: MemoryWorker
    archives: dict[str, str] = field(default_factory=dict)
    """What is wrong with an archive, by its key."""
    region: str = REGION

    def client(self) -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
        """boto3's client of it."""
        return _SESSION.client(
            "kafkaconnect",
            endpoint_url=self.url,
            region_name=self.region,
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1}),
        )


@contextmanager
def served(folder: Path, region: str = REGION) -> Iterator[Served]:
    """The API, for the length of the block; its records are in the folder. A key that ends in .txt is no archive."""
    archives: dict[str, str] = {}

    def check(_: str, key: str) -> str | None:
        return "it is no ZIP file" if key.endswith(".txt") else archives.get(key)

    worker = MemoryWorker()
    records = Records(folder / "kafkaconnect.json", region)
    api = KafkaConnectApi(records, worker, check)

    def moto(*_: object) -> list[bytes]:
        raise AssertionError("moto was asked")

    cloudwatch = DomainDispatcherApplication(create_backend_app)
    own: dict[str, Application] = {
        "kafkaconnect": RestJson("kafkaconnect", api.operations),
        "monitoring": Monitoring(cloudwatch, api.task_states, region),
    }
    with listening(Gate(moto, region, SIGNED.holds, own)) as url:
        yield Served(url, worker, archives, region)
    cloudwatch_backends[ACCOUNT][region].reset()
