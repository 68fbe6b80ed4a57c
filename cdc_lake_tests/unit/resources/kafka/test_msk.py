"""The Msk resource: bootstrap brokers by listener, the cluster's state, and errors."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

from cdc_lake_tests.aws_api.rest_protocol import Operation, RestService
from cdc_lake_tests.fakes.server import serving
from infra.local.aws_api.errors import AwsError
from resources.aws.aws_resource import AwsRequestFailed
from resources.errors import AccessRefused, Unreachable
from resources.kafka.msk import ClusterMissing, ListenerMissing, Msk
from resources.kafka.resource import Kafka

ARN = "arn:aws:kafka:us-east-1:123456789012:cluster/lake/1"


def msk(url: str) -> Msk:
    """Return the resource."""
    return Msk(endpoint_url=url, access_key="key", secret_key="secret", attempts=1, cluster_arn=ARN)


def aws(operations: dict[str, Operation]) -> AbstractContextManager[str]:
    """Serve a fake MSK with these operations."""
    return serving({"kafka": RestService("kafka", operations)})


def refusing(code: str, message: str, status: int) -> Operation:
    """Return an operation that responds with an error."""

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise AwsError(code, message, status=status)

    return refuse


def test_kafka_reads_the_brokers_of_the_cluster_once() -> None:
    requested: list[str] = []

    def brokers(request: dict[str, Any]) -> dict[str, Any]:
        requested.append(request["ClusterArn"])
        return {"bootstrapBrokerStringSaslIam": "b-2:9098,b-1:9098"}

    with aws({"GetBootstrapBrokers": brokers}) as url:
        kafka = Kafka(cluster=msk(url), security="iam")
        assert {kafka.servers(), kafka.servers(), kafka.spark_options()["bootstrap.servers"]} == {"b-1:9098,b-2:9098"}
        assert kafka._broker.bootstrap == "b-1:9098,b-2:9098"
    assert requested == [ARN]
    assert Kafka(bootstrap="b-1:9092", cluster=msk("http://127.0.0.1:9")).servers() == "b-1:9092"
    with pytest.raises(Unreachable, match="neither `bootstrap` nor `cluster` is set"):
        Kafka().topics()


@pytest.mark.parametrize(("code", "status"), [("NotFoundException", 404), ("BadRequestException", 400)])
def test_a_missing_cluster_is_reported(code: str, status: int) -> None:
    with (
        aws({"GetBootstrapBrokers": refusing(code, "no such cluster", status)}) as url,
        pytest.raises(ClusterMissing, match=rf"Cannot find the MSK cluster {ARN} in us-east-1"),
    ):
        msk(url).bootstrap()


def test_each_authentication_has_its_listener() -> None:
    response = {
        "bootstrapBrokerStringSaslIam": "b-1:9098,b-2:9098",
        "bootstrapBrokerStringSaslScram": "b-1:9096",
        "bootstrapBrokerStringTls": "b-1:9094",
    }
    with aws({"GetBootstrapBrokers": lambda _: response}) as url:
        resource = msk(url)
        assert [resource.bootstrap(), resource.bootstrap("scram"), resource.bootstrap("tls")] == list(response.values())
        with pytest.raises(ListenerMissing, match="no listener for plaintext, only for iam, scram, tls"):
            resource.bootstrap("plaintext")


def test_a_cluster_without_brokers_is_reported_with_its_state() -> None:
    described = {"clusterArn": ARN, "clusterName": "lake", "clusterType": "SERVERLESS", "state": "CREATING"}
    reason = {"code": "Quota", "message": "too many brokers"}
    operations: dict[str, Operation] = {
        "GetBootstrapBrokers": lambda _: {},
        "DescribeClusterV2": lambda _: {"clusterInfo": {**described, "stateInfo": reason}},
    }
    with (
        aws(operations) as url,
        pytest.raises(ListenerMissing, match=rf"{ARN}: it has no brokers.*state is CREATING: Quota: too many brokers"),
    ):
        msk(url).bootstrap()


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("AccessDeniedException", AccessRefused),
        ("ExpiredTokenException", AccessRefused),
        ("TooManyRequestsException", AwsRequestFailed),
    ],
)
def test_an_error_of_aws_names_the_cluster_and_the_cause(code: str, raised: type[Exception]) -> None:
    with (
        aws({"GetBootstrapBrokers": refusing(code, "role/dagster may not", 403)}) as url,
        pytest.raises(
            raised, match=rf"Cannot read the bootstrap brokers of the MSK cluster {ARN}:.*{code}: role/dagster may"
        ),
    ):
        msk(url).bootstrap()


def test_an_unreachable_endpoint_is_reported() -> None:
    with pytest.raises(Unreachable, match=ARN):
        msk("http://127.0.0.1:9").bootstrap()
