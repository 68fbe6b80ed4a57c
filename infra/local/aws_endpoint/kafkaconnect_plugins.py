"""What connectors of MSK Connect are made from: custom plugins and worker configurations.

Here: their operations. Not here: connectors (kafkaconnect_connectors.py), and what is wrong with a plugin's archive
(plugin_archives.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.kafkaconnect_state import Records
from infra.local.aws_endpoint.rest_json import Operation

Answer = dict[str, Any]
CheckArchive = Callable[[str, str], str | None]
"""Bucket and key of a plugin's archive to what is wrong with it, None where nothing is."""


class Plugins:
    """Custom plugins: ACTIVE, or CREATE_FAILED with what is wrong with the archive."""

    def __init__(self, records: Records, check_archive: CheckArchive) -> None:
        self._records, self._check_archive = records, check_archive

    def operations(self) -> dict[str, Operation]:
        """The operations by name."""
        return {
            "CreateCustomPlugin": self._create,
            "DescribeCustomPlugin": self._describe,
            "ListCustomPlugins": self._list,
            "DeleteCustomPlugin": self._delete,
        }

    def _create(self, request: dict[str, Any]) -> Answer:
        at = request["location"]["s3Location"]
        wrong = self._check_archive(at["bucketArn"].rpartition(":")[2], at["fileKey"])
        made = self._records.add(
            "custom-plugin",
            request["name"],
            state="CREATE_FAILED" if wrong else "ACTIVE",
            why=wrong,
            contentType=request["contentType"],
            location=request["location"],
            tags=request.get("tags", {}),
        )
        return {
            "customPluginArn": made["arn"],
            "customPluginState": "CREATING",
            "name": made["name"],
            "revision": 1,
        }

    def _describe(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("custom-plugin", request["customPluginArn"])
        answer: Answer = {
            "customPluginArn": found["arn"],
            "customPluginState": found["state"],
            "name": found["name"],
            "creationTime": found["created"],
            "latestRevision": {
                "contentType": found["contentType"],
                "creationTime": found["created"],
                "location": found["location"],
                "revision": 1,
            },
        }
        if found["why"]:
            answer["stateDescription"] = {"code": "InvalidInput", "message": found["why"]}
        return answer

    def _list(self, request: dict[str, Any]) -> Answer:
        found = self._records.of("custom-plugin", request.get("namePrefix", ""))
        listed = [
            {"customPluginArn": each["arn"], "customPluginState": each["state"], "name": each["name"]} for each in found
        ]
        return {"customPlugins": listed}

    def _delete(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("custom-plugin", request["customPluginArn"])
        used = [each["name"] for each in self._records.of("connector") if found["arn"] in str(each["plugins"])]
        if used:
            raise AwsError("BadRequestException", f"The custom plugin is used by connector {', '.join(used)}.")
        self._records.remove(found["arn"])
        return {"customPluginArn": found["arn"], "customPluginState": "DELETING"}


class WorkerConfigurations:
    """Worker configurations: kept as they are given, ACTIVE at once, deleted with the stack's state only."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def operations(self) -> dict[str, Operation]:
        """The operations by name."""
        return {
            "CreateWorkerConfiguration": self._create,
            "DescribeWorkerConfiguration": self._describe,
            "ListWorkerConfigurations": self._list,
        }

    def _create(self, request: dict[str, Any]) -> Answer:
        made = self._records.add(
            "worker-configuration",
            request["name"],
            properties=request["propertiesFileContent"],
            tags=request.get("tags", {}),
        )
        return {
            "workerConfigurationArn": made["arn"],
            "name": made["name"],
            "creationTime": made["created"],
            "latestRevision": {"creationTime": made["created"], "revision": 1},
            "workerConfigurationState": "ACTIVE",
        }

    def _describe(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("worker-configuration", request["workerConfigurationArn"])
        revision = {
            "creationTime": found["created"],
            "propertiesFileContent": found["properties"],
            "revision": 1,
        }
        return {
            "workerConfigurationArn": found["arn"],
            "name": found["name"],
            "creationTime": found["created"],
            "latestRevision": revision,
            "workerConfigurationState": "ACTIVE",
        }

    def _list(self, request: dict[str, Any]) -> Answer:
        found = self._records.of("worker-configuration", request.get("namePrefix", ""))
        return {
            "workerConfigurations": [{"workerConfigurationArn": each["arn"], "name": each["name"]} for each in found]
        }
