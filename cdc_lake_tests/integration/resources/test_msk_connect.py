"""MSK Connect's local API over the real Connect worker: boto3 on one side, the worker's REST interface on the other."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config

from cdc_lake_tests.integration.resources.source_side import Source
from infra.local.attach import load_endpoints
from infra.local.endpoints import Endpoints
from resources.errors import ConnectorFailed
from resources.kafka import Kafka
from resources.msk_connect import MskConnect
from resources.msk_connect_request import ConnectSettings, Plugin, WorkerConfiguration
from resources.waiting import until

KIND = "io.debezium.connector.postgresql.PostgresConnector"
ROLE = "arn:aws:iam::123456789012:role/connect"
ROWS = 20
OFFSETS = "cdc-lake-connect-offsets"
"""The topic of the stack's worker, which runs all connectors."""


@dataclass(frozen=True)
class Aws:
    """The stack's AWS endpoint, with a plugin and a worker configuration of this test run."""

    at: Endpoints
    plugin: str
    workers: str

    def client(self, service: str = "kafkaconnect") -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
        """boto3's client of it, or of the stack's S3."""
        return _client(self.at, service)

    def resource(self, name: str, **changes: object) -> MskConnect:
        """The resource as a pipeline has it whose connector is called so."""
        settings = ConnectSettings(
            subnets=["subnet-1"],
            security_groups=["sg-1"],
            role_arn=ROLE,
            plugins=[Plugin(connector_class=KIND, arn=self.plugin)],
            worker_configurations={name: WorkerConfiguration(arn=self.workers)},
            log_group="/cdc-lake/connect",
        )
        return MskConnect(
            endpoint_url=self.at.aws_endpoint,
            access_key=self.at.s3_access_key,
            secret_key=self.at.s3_secret_key.get_secret_value(),
            settings=settings.model_copy(update=changes),
            kafka=Kafka(bootstrap=self.at.kafka_bootstrap),
            poll_seconds=0.2,
            change_seconds=120,
        )

    def rest(self, name: str, path: str = "config") -> httpx.Response:
        """What the worker itself says of a connector."""
        url = f"{self.at.connect_url}/connectors/{name}/{path}"
        return httpx.get(url, auth=self.at.connect_login, timeout=30, trust_env=False)

    def reached(self, arn: str, state: str = "RUNNING") -> dict[str, Any]:
        """DescribeConnector's answer, once it tells the state."""
        return until(
            lambda: dict(self.client().describe_connector(connectorArn=arn)),
            lambda found: found["connectorState"] in {state, "FAILED"},
            seconds=90,
            what=f"{arn} to be {state}",
            pause_seconds=0.2,
        )


def _client(at: Endpoints, service: str) -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=at.s3_endpoint if service == "s3" else at.aws_endpoint,
        region_name=at.region,
        aws_access_key_id=at.s3_access_key,
        aws_secret_access_key=at.s3_secret_key.get_secret_value(),
        config=Config(s3={"addressing_style": "path"}),
    )


@pytest.fixture(scope="module")
def aws(engines: Source) -> Iterator[Aws]:
    """The endpoint beside the engines."""
    engines.stack.up(["connect", "s3", "aws"])
    at = load_endpoints(engines.stack.home.path)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("debezium.jar", b"")  # the worker runs the one that it was started with
    _client(at, "s3").put_object(Bucket=at.bucket, Key="plugins/debezium.zip", Body=archive.getvalue())
    client = _client(at, "kafkaconnect")
    location = {"s3Location": {"bucketArn": f"arn:aws:s3:::{at.bucket}", "fileKey": "plugins/debezium.zip"}}
    plugin = client.create_custom_plugin(name="debezium", contentType="ZIP", location=location)["customPluginArn"]
    assert client.describe_custom_plugin(customPluginArn=plugin)["customPluginState"] == "ACTIVE"
    properties = base64.b64encode(f"offset.storage.topic={OFFSETS}\n".encode()).decode()
    workers = client.create_worker_configuration(name="shop", propertiesFileContent=properties)
    yield Aws(at, plugin, workers["workerConfigurationArn"])
    for each in client.list_connectors()["connectors"]:
        client.delete_connector(connectorArn=each["connectorArn"])


@pytest.fixture
def shop(source: Source) -> Source:
    """A table of some rows, with what a connector needs at the source."""
    source.execute(f"create table ev (id int primary key); insert into ev select generate_series(1, {ROWS})")
    source.postgres.ensure_heartbeat(source.schema)
    source.postgres.ensure_publication(source.schema, [(source.schema, table) for table in source.tables])
    return source


def test_a_connector_by_boto3_is_one_on_the_worker(aws: Aws, shop: Source) -> None:
    client, name, config = aws.client(), shop.schema, shop.config()
    cluster = {"bootstrapServers": aws.at.kafka_bootstrap, "vpc": {"subnets": ["s-1"], "securityGroups": ["sg-1"]}}

    def make() -> str:
        made = client.create_connector(
            connectorName=name,
            connectorConfiguration=config,
            capacity={"provisionedCapacity": {"mcuCount": 1, "workerCount": 1}},
            kafkaCluster={"apacheKafkaCluster": cluster},
            kafkaClusterClientAuthentication={"authenticationType": "NONE"},
            kafkaClusterEncryptionInTransit={"encryptionType": "PLAINTEXT"},
            kafkaConnectVersion="3.7.x",
            plugins=[{"customPlugin": {"customPluginArn": aws.plugin, "revision": 1}}],
            serviceExecutionRoleArn=ROLE,
            workerConfiguration={"workerConfigurationArn": aws.workers, "revision": 1},
        )
        return str(made["connectorArn"])

    first = make()
    found = aws.reached(first)
    assert found["connectorState"] == "RUNNING", found
    assert aws.rest(name).json() == {**config, "name": name}
    shop.wait_for_beat()
    assert len(shop.rows()) == ROWS

    slower = {**config, "poll.interval.ms": "75"}
    begun = client.update_connector(
        connectorArn=first, currentVersion=found["currentVersion"], connectorConfiguration=slower
    )
    aws.reached(first)
    ended = client.describe_connector_operation(connectorOperationArn=begun["connectorOperationArn"])
    assert ended["connectorOperationState"] == "UPDATE_COMPLETE"
    assert aws.rest(name).json()["poll.interval.ms"] == "75"

    client.delete_connector(connectorArn=first)
    until(
        lambda: [each["connectorArn"] for each in client.list_connectors(connectorNamePrefix=name)["connectors"]],
        lambda listed: not listed,
        seconds=30,
        what=f"connector {name} to be gone",
    )
    assert aws.rest(name).status_code == httpx.codes.NOT_FOUND

    again = make()
    assert again != first
    assert aws.reached(again)["connectorState"] == "RUNNING"
    assert aws.rest(name, "status").json()["tasks"][0]["state"] == "RUNNING"


def test_made_anew_it_goes_on_where_it_was(aws: Aws, shop: Source) -> None:
    aws.resource(shop.schema).put(shop.schema, shop.config())
    aws.resource(shop.schema).wait_running(shop.schema, timeout_seconds=90)
    shop.wait_for_beat()
    shop.execute(f"insert into ev values ({ROWS + 1})")

    other = aws.resource(shop.schema, log_group="/elsewhere")
    assert other.put(shop.schema, shop.config()) == "updated"  # deleted and made: AWS can't change a log group
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
