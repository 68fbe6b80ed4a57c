"""The resource against the local MSK API over boto3, and against a cluster as AWS has it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cdc_lake_tests.fakes.server import SIGNED, listening
from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.gate import Gate
from infra.local.aws_endpoint.kafka import KafkaApi
from infra.local.aws_endpoint.rest_json import Operation, RestJson
from infra.local.endpoints import KAFKA_CLUSTER, REGION
from resources.aws import AwsRequestFailed
from resources.errors import AccessRefused, Unreachable
from resources.kafka import Kafka
from resources.msk import ClusterMissing, ListenerMissing, Msk

ON_AWS = f"arn:aws:kafka:{REGION}:123456789012:cluster/lake/1"
CONFIG = Config(retries={"total_max_attempts": 1})


@pytest.fixture
def broker() -> Iterator[socket.socket]:
    """Something that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@dataclass(frozen=True)
class Local:
    """The endpoint's API."""

    url: str
    bootstrap: str

    def client(self) -> Any:  # noqa: ANN401 - its stubs are not among the dependencies
        """boto3's client of it."""
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        return boto3.client("kafka", endpoint_url=self.url, region_name=REGION, config=CONFIG, **keys)


def _moto(*_: object) -> list[bytes]:
    raise AssertionError("moto was asked")


@pytest.fixture
def local(broker: socket.socket) -> Iterator[Local]:
    """The API, with a broker behind it."""
    bootstrap = f"127.0.0.1:{broker.getsockname()[1]}"
    api = KafkaApi(KAFKA_CLUSTER, bootstrap, "4.3.1")
    with listening(Gate(_moto, REGION, SIGNED.holds, {"kafka": RestJson("kafka", api.operations)})) as url:
        yield Local(url, bootstrap)


def msk(url: str, arn: str = KAFKA_CLUSTER) -> Msk:
    """The resource."""
    return Msk(endpoint_url=url, access_key="key", secret_key="secret", attempts=1, cluster_arn=arn)


def aws(answers: dict[str, Operation]) -> Any:  # noqa: ANN401 - a context manager
    """MSK with prepared answers."""
    return listening(Gate(_moto, REGION, SIGNED.holds, {"kafka": RestJson("kafka", answers)}))


def test_the_local_broker_is_found_by_the_clusters_arn(local: Local) -> None:
    assert msk(local.url).bootstrap("plaintext") == local.bootstrap
    found = msk(local.url).describe()
    assert (found.arn, found.name, found.state) == (KAFKA_CLUSTER, "cdc-lake", "ACTIVE")
    assert (found.serverless, found.kafka_version, found.brokers, found.reason) == (False, "4.3.1", 1, None)


def test_kafka_finds_its_brokers_by_the_cluster(local: Local) -> None:
    kafka = Kafka(cluster=msk(local.url))
    assert kafka.spark_options() == {"bootstrap.servers": local.bootstrap}
    assert kafka._broker.bootstrap == local.bootstrap
    assert Kafka(bootstrap="b-1:9092", cluster=msk("http://127.0.0.1:9")).servers() == "b-1:9092"
    with pytest.raises(ListenerMissing, match="no listener for iam"):
        Kafka(cluster=msk(local.url), security="iam").servers()
    with pytest.raises(Unreachable, match="neither bootstrap nor cluster"):
        Kafka().topics()


def test_the_cluster_is_asked_once() -> None:
    asked: list[str] = []

    def tell(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["ClusterArn"])
        return {"bootstrapBrokerStringSaslIam": "b-1:9098"}

    with aws({"GetBootstrapBrokers": tell}) as url:
        kafka = Kafka(cluster=msk(url, ON_AWS), security="iam")
        assert {kafka.servers(), kafka.servers(), kafka.spark_options()["bootstrap.servers"]} == {"b-1:9098"}
    assert asked == [ON_AWS]


def test_the_local_broker_takes_no_signatures_and_says_so(local: Local) -> None:
    with pytest.raises(ListenerMissing, match=r"cluster/cdc-lake/.* has no listener for iam; it has plaintext"):
        msk(local.url).bootstrap()


def test_a_broker_that_takes_no_connection_is_not_active(local: Local, broker: socket.socket) -> None:
    broker.close()
    assert msk(local.url).describe().state == "HEALING"


def test_lists_and_both_descriptions_are_told(local: Local) -> None:
    client = local.client()
    assert client.list_clusters(ClusterNameFilter="cdc")["ClusterInfoList"][0]["ClusterArn"] == KAFKA_CLUSTER
    assert client.list_clusters_v2()["ClusterInfoList"][0]["ClusterType"] == "PROVISIONED"
    assert client.list_clusters_v2(ClusterNameFilter="other")["ClusterInfoList"] == []
    assert client.list_clusters_v2(ClusterTypeFilter="SERVERLESS")["ClusterInfoList"] == []
    first, second = (
        client.describe_cluster(ClusterArn=KAFKA_CLUSTER)["ClusterInfo"],
        client.describe_cluster_v2(ClusterArn=KAFKA_CLUSTER)["ClusterInfo"],
    )
    assert first["NumberOfBrokerNodes"] == second["Provisioned"]["NumberOfBrokerNodes"] == 1
    with pytest.raises(ClientError, match="not offered by the local AWS endpoint"):
        client.delete_cluster(ClusterArn=KAFKA_CLUSTER)


@pytest.mark.parametrize("arn", [ON_AWS, "my-cluster"])
def test_another_cluster_is_not_there(local: Local, arn: str) -> None:
    with pytest.raises(ClusterMissing, match=rf"There is no MSK cluster {arn} in us-east-1"):
        msk(local.url, arn).bootstrap()


def test_each_way_of_signing_in_has_its_listener() -> None:
    told = {
        "bootstrapBrokerStringSaslIam": "b-1:9098,b-2:9098",
        "bootstrapBrokerStringSaslScram": "b-1:9096",
        "bootstrapBrokerStringTls": "b-1:9094",
    }
    with aws({"GetBootstrapBrokers": lambda _: told}) as url:
        one = msk(url, ON_AWS)
        assert [one.bootstrap(), one.bootstrap("scram"), one.bootstrap("tls")] == list(told.values())
        with pytest.raises(ListenerMissing, match="no listener for plaintext; it has iam, scram, tls"):
            one.bootstrap("plaintext")


def test_a_cluster_that_is_being_made_says_its_state() -> None:
    described = {"clusterArn": ON_AWS, "clusterName": "lake", "clusterType": "SERVERLESS", "state": "CREATING"}
    reason = {"code": "Quota", "message": "too many brokers"}
    answers: dict[str, Operation] = {
        "GetBootstrapBrokers": lambda _: {},
        "DescribeClusterV2": lambda _: {"clusterInfo": {**described, "stateInfo": reason}},
    }
    with aws(answers) as url:
        with pytest.raises(ListenerMissing, match=rf"{ON_AWS} has no brokers yet.* CREATING"):
            msk(url, ON_AWS).bootstrap()
        found = msk(url, ON_AWS).describe()
        assert (found.serverless, found.kafka_version, found.brokers) == (True, None, None)
        assert found.reason == "Quota: too many brokers"


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("AccessDeniedException", AccessRefused),
        ("ExpiredTokenException", AccessRefused),
        ("TooManyRequestsException", AwsRequestFailed),
    ],
)
def test_what_aws_refuses_names_the_cluster_and_why(code: str, raised: type[Exception]) -> None:

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise AwsError(code, "role/dagster may not", status=403)

    with (
        aws({"GetBootstrapBrokers": refuse}) as url,
        pytest.raises(raised, match=rf"bootstrap brokers of the MSK cluster {ON_AWS} failed.*{code}: role/dagster may"),
    ):
        msk(url, ON_AWS).bootstrap()


def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=ON_AWS):
        msk("http://127.0.0.1:9", ON_AWS).describe()
