"""MSK Connect over a fake worker, for unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config
from moto.cloudwatch.models import cloudwatch_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from cdc_lake_tests.aws_api.kafkaconnect.connectors import MskConnect
from cdc_lake_tests.aws_api.kafkaconnect.plugins import ACCOUNT
from cdc_lake_tests.fakes.server import serving
from cdc_lake_tests.fakes.source.connect import FakeConnect

_SESSION = boto3.Session(aws_access_key_id="key", aws_secret_access_key="secret")
"""One session for all tests: it reads the models of the services once."""


@dataclass(frozen=True)
class Served:
    """MSK Connect, and moto's CloudWatch, at a URL."""

    url: str
    worker: FakeConnect
    api: MskConnect
    region: str

    def client(self, service: str = "kafkaconnect") -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
        """Return boto3's client."""
        config = Config(retries={"total_max_attempts": 1})
        return _SESSION.client(service, endpoint_url=self.url, region_name=self.region, config=config)  # type: ignore[call-overload]

    def count_tasks(self, connector: str, running: int, failed: int, at: datetime | None = None) -> None:
        """Put the metrics of a connector's tasks, as AWS does each minute."""
        dimensions = [{"Name": "ConnectorName", "Value": connector}]
        # CloudWatch has whole seconds, and the resource ignores metrics from before the connector's last change.
        at = at or datetime.now(UTC) + timedelta(seconds=2)
        data = [
            {"MetricName": name, "Dimensions": dimensions, "Value": count, "Timestamp": at}
            for name, count in (("RunningTaskCount", running), ("ErroredTaskCount", failed))
        ]
        self.client("cloudwatch").put_metric_data(Namespace="AWS/KafkaConnect", MetricData=data)


@contextmanager
def served(region: str = "us-east-1") -> Iterator[Served]:
    """Serve MSK Connect."""
    worker = FakeConnect()
    api = MskConnect(worker, region)
    cloudwatch = DomainDispatcherApplication(create_backend_app)
    with serving({"kafkaconnect": api.service, "monitoring": cloudwatch}, region) as url:
        yield Served(url, worker, api, region)
    cloudwatch_backends[ACCOUNT][region].reset()
