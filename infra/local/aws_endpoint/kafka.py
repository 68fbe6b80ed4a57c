"""MSK's API for the one cluster that the stack has: its broker.

Here: the operations that tell of it. Making and changing clusters is refused: the stack does that.

The broker has no listener but a plain one: there are no bootstrap brokers for IAM, SCRAM or TLS. A broker that takes no
connection is told as HEALING, as MSK tells one that it replaces.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import Any

from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.rest_json import Operation

Answer = dict[str, Any]
_ARN = re.compile(r"arn:aws:kafka:[^:]+:\d{12}:cluster/[^/]+/[^/]+")
_SECONDS = 1.0


class KafkaApi:
    """The offered operations on the cluster with this ARN, whose broker is at `bootstrap` (host:port)."""

    def __init__(self, arn: str, bootstrap: str, version: str) -> None:
        self._arn, self._bootstrap, self._version = arn, bootstrap, version
        self.operations: dict[str, Operation] = {
            "DescribeCluster": self._describe,
            "DescribeClusterV2": self._describe_v2,
            "GetBootstrapBrokers": self._brokers,
            "ListClusters": lambda request: self._list(request, self._told),
            "ListClustersV2": lambda request: self._list(request, self._told_v2),
        }

    def _brokers(self, request: dict[str, Any]) -> Answer:
        self._known(request)
        return {"bootstrapBrokerString": self._bootstrap}

    def _describe(self, request: dict[str, Any]) -> Answer:
        self._known(request)
        return {"clusterInfo": self._told()}

    def _describe_v2(self, request: dict[str, Any]) -> Answer:
        self._known(request)
        return {"clusterInfo": self._told_v2()}

    def _list(self, request: dict[str, Any], told: Callable[[], Answer]) -> Answer:
        prefix, kind = request.get("ClusterNameFilter", ""), request.get("ClusterTypeFilter", "PROVISIONED")
        listed = self._name.startswith(prefix) and kind.upper() == "PROVISIONED"
        return {"clusterInfoList": [told()] if listed else []}

    @property
    def _name(self) -> str:
        return self._arn.split("/")[1]

    def _known(self, request: dict[str, Any]) -> None:
        asked = request["ClusterArn"]
        if asked == self._arn:
            return
        if _ARN.fullmatch(asked) is None:
            raise AwsError("BadRequestException", "One or more of the parameters are not valid.", status=400)
        raise AwsError("NotFoundException", f"The cluster {asked} does not exist.", status=404)

    def _told(self) -> Answer:
        return {**self._base(), **self._provisioned()}

    def _told_v2(self) -> Answer:
        return {**self._base(), "clusterType": "PROVISIONED", "provisioned": self._provisioned()}

    def _base(self) -> Answer:
        return {"clusterArn": self._arn, "clusterName": self._name, "state": self._state()}

    def _provisioned(self) -> Answer:
        return {
            "clientAuthentication": {"unauthenticated": {"enabled": True}},
            "currentBrokerSoftwareInfo": {"kafkaVersion": self._version},
            "encryptionInfo": {"encryptionInTransit": {"clientBroker": "PLAINTEXT", "inCluster": False}},
            "numberOfBrokerNodes": 1,
        }

    def _state(self) -> str:
        host, _, port = self._bootstrap.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _SECONDS).close()
        except OSError:
            return "HEALING"
        return "ACTIVE"
