"""The MSK Connect resource over a real Connect worker: connectors keep their offsets, or begin with a snapshot."""

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

KIND = "io.debezium.connector.postgresql.PostgresConnector"
ROWS = 20
OFFSETS = "cdc-lake-connect-offsets"
"""The topic of the stack's worker, which runs all connectors."""


@dataclass(frozen=True)
class Aws:
    """MSK Connect over the stack's worker, with a plugin and a worker configuration."""

    at: Endpoints
    url: str
    plugin: str
    workers: str

    def resource(self, name: str, **changes: object) -> MskConnect:
        """The resource for a connector of this name; `changes` are of the settings."""
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
def aws(engines: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """AWS's APIs over the engines."""
    at = load_endpoints(engines.stack.home.path)
    with aws_api(at, tmp_path_factory.mktemp("aws")) as found:
        location = {"s3Location": {"bucketArn": "arn:aws:s3:::bucket", "fileKey": "debezium.zip"}}
        plugin = client(at, found.url, "kafkaconnect").create_custom_plugin(
            name="debezium", contentType="ZIP", location=location
        )
        workers = found.msk_connect.plugins.add_worker_configuration("shop", f"offset.storage.topic={OFFSETS}\n")
        yield Aws(at, found.url, plugin["customPluginArn"], workers)


@pytest.fixture
def shop(source: Source) -> Source:
    """A table of some rows, with what a connector needs at the source."""
    source.execute(f"create table ev (id int primary key); insert into ev select generate_series(1, {ROWS})")
    source.postgres.ensure_heartbeat(source.schema)
    source.postgres.ensure_publication(source.schema, [(source.schema, table) for table in source.tables])
    return source


def test_a_re_created_connector_resumes_from_its_offsets(aws: Aws, shop: Source) -> None:
    aws.resource(shop.schema).put(shop.schema, shop.config())
    aws.resource(shop.schema).wait_running(shop.schema, timeout_seconds=90)
    shop.wait_for_beat()
    shop.execute(f"insert into ev values ({ROWS + 1})")

    other = aws.resource(shop.schema, log_group="/elsewhere")
    assert other.put(shop.schema, shop.config()) == "updated"  # re-created: AWS cannot change a log group
    shop.execute(f"insert into ev values ({ROWS + 2})")
    other.wait_running(shop.schema, timeout_seconds=90)
    shop.wait_for_beat()

    (stored,) = other.offsets(shop.schema)
    assert stored["lsn"]
    rows = [(row["id"], row["__op"]) for row in shop.rows()]
    assert sorted(rows) == [(n, "r") for n in range(1, ROWS + 1)] + [(ROWS + 1, "c"), (ROWS + 2, "c")]
    assert other.put(shop.schema, shop.config()) == "unchanged"


def test_without_its_offsets_it_begins_with_a_snapshot(aws: Aws, shop: Source) -> None:
    one = aws.resource(shop.schema)
    one.put(shop.schema, shop.config())
    one.wait_running(shop.schema, timeout_seconds=90)
    shop.wait_for_beat()
    one.halt(shop.schema, shop.config())
    assert one.offsets(shop.schema)
    one.delete_offsets(shop.schema)
    assert one.offsets(shop.schema) == ()
    shop.postgres.drop_slot(shop.config()["slot.name"])
    one.put(shop.schema, shop.config())
    one.wait_running(shop.schema, timeout_seconds=90)
    shop.wait_for_beat()
    ids = [row["id"] for row in shop.rows() if row["__op"] == "r"]
    assert sorted(ids) == sorted(2 * list(range(1, ROWS + 1)))


def test_a_database_that_is_not_there_is_a_failed_connector(aws: Aws, shop: Source) -> None:
    one = aws.resource(shop.schema)
    one.put(shop.schema, shop.config(**{"database.port": "1"}))
    with pytest.raises(ConnectorFailed, match=r"(?s)FAILED.*onnection"):
        one.wait_running(shop.schema, timeout_seconds=60)
    assert one.put(shop.schema, shop.config()) == "updated"
    assert one.wait_running(shop.schema, timeout_seconds=90).state == "RUNNING"
