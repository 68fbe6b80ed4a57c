"""An Amazon MSK cluster as a Dagster resource: its bootstrap brokers and its description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from resources.aws.client import AwsRequestFailed, AwsResource
from resources.errors import ResourceError

Access = Literal["iam", "scram", "tls", "plaintext"]
"""A client's authentication method; each method has its own listener."""
_LISTENERS: dict[Access, str] = {
    "iam": "BootstrapBrokerStringSaslIam",
    "scram": "BootstrapBrokerStringSaslScram",
    "tls": "BootstrapBrokerStringTls",
    "plaintext": "BootstrapBrokerString",
}
_WRONG_ARN = frozenset({"BadRequestException", "NotFoundException"})


class ClusterMissing(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """There is no cluster with this ARN in the region."""


class ListenerMissing(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """A cluster has no listener for an authentication method, or has no brokers yet."""


@dataclass(frozen=True)
class Cluster:
    """MSK's description of a cluster; a serverless one has no Kafka version and no number of brokers."""

    arn: str
    name: str
    state: str
    """ACTIVE, or the operation in progress: CREATING, UPDATING, HEALING, …"""
    serverless: bool
    kafka_version: str | None
    brokers: int | None
    reason: str | None
    """MSK's explanation of the state, if there is one."""


class Msk(AwsResource):
    """One cluster.

    Every method raises Unreachable, AccessRefused, AwsRequestFailed or ClusterMissing; each error contains the ARN.
    """

    cluster_arn: str = Field(description="arn:aws:kafka:<region>:<account>:cluster/<name>/<id>")

    def bootstrap(self, access: Access = "iam") -> str:
        """Return Kafka's `bootstrap.servers` for clients with this authentication method.

        Raises ListenerMissing; the error names the listeners that the cluster has.
        """
        found = self._call("get_bootstrap_brokers", "Reading the bootstrap brokers of")
        brokers = found.get(_LISTENERS[access])
        if brokers:
            # MSK returns the brokers in varying order.
            return ",".join(sorted(str(brokers).split(",")))
        others = [each for each, member in _LISTENERS.items() if found.get(member)]
        if not others:
            raise ListenerMissing(
                f"Cannot connect to the cluster {self.cluster_arn}: its state is {self.describe().state}, and it has no"
                " brokers.",
                "Wait until it is ACTIVE.",
            )
        raise ListenerMissing(
            f"Cannot connect to the cluster {self.cluster_arn}: it has no listener for {access}; it has"
            f" {', '.join(others)}.",
            "Turn the listener on in the cluster's security settings, or set the resource's `security` to another one.",
        )

    def describe(self) -> Cluster:
        """Return the cluster's description."""
        found = self._call("describe_cluster_v2", "Describing")["ClusterInfo"]
        provisioned = found.get("Provisioned", {})
        reason = found.get("StateInfo", {})
        return Cluster(
            arn=found["ClusterArn"],
            name=found["ClusterName"],
            state=found["State"],
            serverless=found["ClusterType"] == "SERVERLESS",
            kafka_version=provisioned.get("CurrentBrokerSoftwareInfo", {}).get("KafkaVersion"),
            brokers=provisioned.get("NumberOfBrokerNodes"),
            reason=": ".join(filter(None, (reason.get("Code"), reason.get("Message")))) or None,
        )

    def _call(self, method: str, action: str) -> dict[str, Any]:
        client = self.client("kafka")
        try:
            with self.explained(f"{action} the MSK cluster {self.cluster_arn}"):
                return dict(getattr(client, method)(ClusterArn=self.cluster_arn))
        except AwsRequestFailed as error:
            if error.code in _WRONG_ARN:
                raise ClusterMissing(
                    f"Cannot find the MSK cluster {self.cluster_arn} in {self.region}: {error.aws_message}.",
                    "`aws kafka list-clusters-v2` lists the clusters of the region; correct the ARN.",
                ) from error
            raise
