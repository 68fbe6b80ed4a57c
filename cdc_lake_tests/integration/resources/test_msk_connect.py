"""The MSK Connect resource on a real Connect worker: connectors resume from their offsets, or take a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from cdc_lake_tests.aws_api.served import aws_api, client
from cdc_lake_tests.integration.resources.source_side import Source
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from resources.errors import ConnectorFailed
from resources.kafka.resource import Kafka
from resources.msk_connect.connector_request import ConnectSettings, Plugin, WorkerConfiguration
from resources.msk_connect.resource import MskConnect
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT

KIND = "io.debezium.connector.postgresql.PostgresConnector"
ROWS = 20
OFFSETS = "cdc-lake-connect-offsets"
"""The offsets topic of the stack's worker, which runs all connectors."""


@dataclass(frozen=True)
class Aws:
    """The emulated MSK Connect on the stack's worker, with a plugin and a worker configuration."""

    at: Endpoints
    url: str
    plugin: str
    workers: str

    def resource(self, name: str, **changes: object) -> MskConnect:
        """Return the resource for a connector of this name, with changed settings."""
        settings = ConnectSettings(
            subnets=["subnet-1"],
            security_groups=["sg-1"],
            role_arn="arn:aws:iam::123456789012:role/connect",
            plugins=[Plugin(connector_class=KIND, arn=self.plugin)],
            worker_configurations={name: WorkerConfiguration(arn=self.workers)},
            log_group="/cdc-lake/connect",
        )
        return MskConnect(
            endpoint_url=self.url,
            access_key=self.at.s3_access_key,
            secret_key=self.at.s3_secret_key.get_secret_value(),
            settings=settings.model_copy(update=changes),
            kafka=Kafka(bootstrap=self.at.kafka_bootstrap),
            poll_seconds=0.2,
            change_seconds=120,
        )


@pytest.fixture(scope="module")
def aws(source_engines: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """Run the emulated AWS APIs on the engines."""
    at = load_endpoints(source_engines.stack.home.path)
    with aws_api(at, tmp_path_factory.mktemp("aws")) as found:
        location = {"s3Location": {"bucketArn": "arn:aws:s3:::bucket", "fileKey": "debezium.zip"}}
        plugin = client(at, found.url, "kafkaconnect").create_custom_plugin(
            name="debezium", contentType="ZIP", location=location
        )
        workers = found.msk_connect.plugins.add_worker_configuration("shop", f"offset.storage.topic={OFFSETS}\n")
        yield Aws(at, found.url, plugin["customPluginArn"], workers)


@pytest.fixture
def captured(source: Source) -> Source:
    """Return a source with a table of ROWS rows, heartbeats and a publication."""
    source.execute(f"create table ev (id int primary key); insert into ev select generate_series(1, {ROWS})")
    source.postgres.ensure_internal_table(source.schema, HEARTBEAT)
    source.postgres.ensure_publication(source.schema, [(source.schema, table) for table in source.tables])
    return source


def test_a_re_created_connector_resumes_from_its_offsets(aws: Aws, captured: Source) -> None:
    aws.resource(captured.schema).put(captured.schema, captured.config())
    aws.resource(captured.schema).wait_running(captured.schema, timeout_seconds=90)
    captured.wait_for_heartbeat()
    captured.execute(f"insert into ev values ({ROWS + 1})")

    other = aws.resource(captured.schema, log_group="/elsewhere")
    assert other.put(captured.schema, captured.config()) == "updated"  # re-created: AWS cannot change a log group
    captured.execute(f"insert into ev values ({ROWS + 2})")
    other.wait_running(captured.schema, timeout_seconds=90)
    captured.wait_for_heartbeat()

    (stored,) = other.offsets(captured.schema)
    assert stored["lsn"]
    rows = [(row["id"], row["__op"]) for row in captured.rows()]
    assert sorted(rows) == [(n, "r") for n in range(1, ROWS + 1)] + [(ROWS + 1, "c"), (ROWS + 2, "c")]
    assert other.put(captured.schema, captured.config()) == "unchanged"


def test_a_connector_without_offsets_takes_a_snapshot(aws: Aws, captured: Source) -> None:
    one = aws.resource(captured.schema)
    one.put(captured.schema, captured.config())
    one.wait_running(captured.schema, timeout_seconds=90)
    captured.wait_for_heartbeat()
    one.ensure_stopped(captured.schema, captured.config())
    assert one.offsets(captured.schema)
    one.delete_offsets(captured.schema)
    assert one.offsets(captured.schema) == ()
    captured.postgres.drop_slot(captured.config()["slot.name"])
    one.put(captured.schema, captured.config())
    one.wait_running(captured.schema, timeout_seconds=90)
    captured.wait_for_heartbeat()
    ids = [row["id"] for row in captured.rows() if row["__op"] == "r"]
    assert sorted(ids) == sorted(2 * list(range(1, ROWS + 1)))


def test_a_connector_without_its_database_fails(aws: Aws, captured: Source) -> None:
    one = aws.resource(captured.schema)
    one.put(captured.schema, captured.config(**{"database.port": "1"}))
    with pytest.raises(ConnectorFailed, match=r"(?s)FAILED.*onnection"):
        one.wait_running(captured.schema, timeout_seconds=60)
    assert one.put(captured.schema, captured.config()) == "updated"
    assert one.wait_running(captured.schema, timeout_seconds=90).state == "RUNNING"
