"""In-memory fake of MSK Connect's custom plugins and worker configurations."""

from __future__ import annotations

import uuid
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from cdc_lake_tests.aws_api.rest_protocol import Operation
from infra.local.aws_api.errors import AwsError

ACCOUNT = "123456789012"

Answer = dict[str, Any]


def new_arn(region: str, kind: str, name: str) -> str:
    """Return an ARN that is not in use."""
    return f"arn:aws:kafkaconnect:{region}:{ACCOUNT}:{kind}/{name}/{uuid.uuid4()}-2"


def not_found(arn: str) -> AwsError:
    """Return the error for an ARN that does not exist."""
    return AwsError("NotFoundException", f"The resource {arn} does not exist.", status=404)


class Plugins:
    """Plugins and worker configurations, both by ARN."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._plugins: dict[str, Answer] = {}
        self._worker_configurations: dict[str, Answer] = {}
        self.faults: dict[str, str] = {}
        """Maps the S3 key of an archive to the error with which plugin creation fails."""
        self.operations: dict[str, Operation] = {
            "CreateCustomPlugin": self._create,
            "DescribeCustomPlugin": lambda request: self._plugin(request["customPluginArn"]),
            "ListCustomPlugins": self._list,
            "DeleteCustomPlugin": self._delete,
            "DescribeWorkerConfiguration": lambda request: self._worker_configuration(
                request["workerConfigurationArn"]
            ),
        }

    def add_worker_configuration(self, name: str, properties: str) -> str:
        """Create a worker configuration, if there is none with this name, as infra/aws does; return its ARN."""
        for each in self._worker_configurations.values():
            if each["name"] == name:
                return str(each["workerConfigurationArn"])
        arn, now = new_arn(self._region, "worker-configuration", name), datetime.now(UTC)
        content = b64encode(properties.encode()).decode()
        self._worker_configurations[arn] = {
            "workerConfigurationArn": arn,
            "name": name,
            "creationTime": now,
            "latestRevision": {"creationTime": now, "propertiesFileContent": content, "revision": 1},
        }
        return arn

    def check(self, connector: dict[str, Any]) -> None:
        """Check that plugins and worker configuration of a CreateConnector request exist. Raises NotFoundException."""
        for each in connector["plugins"]:
            self._plugin(each["customPlugin"]["customPluginArn"])
        self._worker_configuration(connector["workerConfiguration"]["workerConfigurationArn"])

    def _create(self, request: dict[str, Any]) -> Answer:
        arn, now = new_arn(self._region, "custom-plugin", request["name"]), datetime.now(UTC)
        fault = self.faults.get(request["location"]["s3Location"]["fileKey"])
        revision = {name: request[name] for name in ("contentType", "location")}
        self._plugins[arn] = {
            "customPluginArn": arn,
            "customPluginState": "CREATE_FAILED" if fault else "ACTIVE",
            "name": request["name"],
            "creationTime": now,
            "latestRevision": {**revision, "creationTime": now, "revision": 1},
            **({"stateDescription": {"code": "InvalidInput", "message": fault}} if fault else {}),
        }
        return {"customPluginArn": arn, "customPluginState": "CREATING", "name": request["name"], "revision": 1}

    def _list(self, request: dict[str, Any]) -> Answer:
        listed = [each for each in self._plugins.values() if each["name"].startswith(request.get("namePrefix", ""))]
        return {"customPlugins": [{name: each[name] for name in ("customPluginArn", "name")} for each in listed]}

    def _delete(self, request: dict[str, Any]) -> Answer:
        arn = self._plugin(request["customPluginArn"])["customPluginArn"]
        del self._plugins[arn]
        return {"customPluginArn": arn, "customPluginState": "DELETING"}

    def _plugin(self, arn: str) -> Answer:
        if arn not in self._plugins:
            raise not_found(arn)
        return self._plugins[arn]

    def _worker_configuration(self, arn: str) -> Answer:
        if arn not in self._worker_configurations:
            raise not_found(arn)
        return self._worker_configurations[arn]
