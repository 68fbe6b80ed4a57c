"""An Amazon MSK cluster as a Dagster resource: its bootstrap brokers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
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


class Msk(AwsResource):
    """One cluster.

    Methods raise Unreachable, AccessRefused, AwsRequestFailed or ClusterMissing; each error contains the ARN.

    Usage:

        cluster = Msk(region="eu-west-1", cluster_arn="arn:aws:kafka:eu-west-1:123456789012:cluster/cdc/1a2b")
        brokers = cluster.bootstrap("iam")
    """

    cluster_arn: str = Field(description="arn:aws:kafka:<region>:<account>:cluster/<name>/<id>")

    def bootstrap(self, access: Access = "iam") -> str:
        """Return Kafka's `bootstrap.servers` for clients with this authentication method.

        Raises ListenerMissing; the error names the listeners that the cluster has.
        """
        found = self._call("get_bootstrap_brokers", "read the bootstrap brokers of")
        brokers = found.get(_LISTENERS[access])
        if brokers:
            # MSK returns the brokers in varying order.
            return ",".join(sorted(str(brokers).split(",")))
        others = [each for each, member in _LISTENERS.items() if found.get(member)]
        if not others:
            raise ListenerMissing(
                f"Cannot connect to the cluster {self.cluster_arn}: it has no brokers. Its state is {self._state()}.",
                "Wait until it is ACTIVE.",
            )
        raise ListenerMissing(
            f"Cannot connect to the cluster {self.cluster_arn}: it has no listener for {access}, only for"
            f" {', '.join(others)}.",
            "Turn the listener on in the cluster's security settings, or choose another `security` of the resource.",
        )

    def _state(self) -> str:
        """Return ACTIVE, or the operation in progress (CREATING, UPDATING, HEALING, …), with MSK's explanation."""
        found = self._call("describe_cluster_v2", "describe")["ClusterInfo"]
        reason = found.get("StateInfo", {})
        return ": ".join(filter(None, (found["State"], reason.get("Code"), reason.get("Message"))))

    def _call(self, method: str, action: str) -> dict[str, Any]:
        client = self.client("kafka")
        try:
            with self.translate_errors(f"{action} the MSK cluster {self.cluster_arn}"):
                return dict(getattr(client, method)(ClusterArn=self.cluster_arn))
        except AwsRequestFailed as error:
            if error.code in _WRONG_ARN:
                raise ClusterMissing(
                    f"Cannot find the MSK cluster {self.cluster_arn} in {self.region}: {error.aws_message}.",
                    "Correct the ARN: `aws kafka list-clusters-v2` lists the clusters of the region.",
                ) from error
            raise
