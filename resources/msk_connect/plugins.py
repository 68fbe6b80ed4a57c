"""Custom plugins of MSK Connect as a Dagster resource: uploads a plugin's zip to S3 and creates the plugin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from pydantic import Field

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.errors import ResourceError
from resources.waiting import until

_ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
_IN_PROGRESS = frozenset({"CREATING", "UPDATING", "DELETING"})


class PluginFailed(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """MSK Connect could not create a plugin from an archive."""


class MskPlugins(AwsResource):
    """Plugins from zips in one bucket.

    Methods raise Unreachable, AccessRefused or AwsRequestFailed if a request to S3 or MSK Connect fails.
    """

    bucket: str
    prefix: str = Field(
        default="plugins/", description="The prefix of the zips' keys: empty, or with a slash at its end."
    )
    s3_endpoint_url: str | None = Field(default=None, description="S3's endpoint; None: AWS's.")
    tags: dict[str, str] = Field(default_factory=dict)
    poll_seconds: float = Field(default=5.0, gt=0)
    change_seconds: float = Field(default=900.0, gt=0, description="How long the creation of a plugin may take.")

    def ensure(self, archive: Path) -> str:
        """Return the ARN of the ACTIVE plugin with the archive's name; uploads the archive and creates it if missing.

        Raises:
            PluginFailed: MSK Connect could not create it, with its reason; the failed plugin is kept for inspection.
            WaitTimedOut: it takes longer than `change_seconds`.
        """
        name, key = archive.stem, f"{self.prefix}{archive.name}"
        found = self._settled(name)
        if found is not None and found["customPluginState"] != "ACTIVE":
            self._delete(name, found["customPluginArn"])
            found = None
        if found is None:
            self._upload(archive, key)
            found = self._create(name, key)
        return str(found["customPluginArn"])

    def _upload(self, archive: Path, key: str) -> None:
        # The key contains the content's hash, and S3 shows only complete objects, so an existing object is kept.
        with self.translate_errors(f"upload {archive} to s3://{self.bucket}/{key}"):
            client = self.client("s3", self.s3_endpoint_url)
            try:
                stored_size = client.head_object(Bucket=self.bucket, Key=key)["ContentLength"]
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") not in _ABSENT:
                    raise
                stored_size = None
            if stored_size != archive.stat().st_size:
                client.upload_file(str(archive), self.bucket, key)

    def _create(self, name: str, key: str) -> Mapping[str, Any]:
        with self.translate_errors(f"create the custom plugin {name} from s3://{self.bucket}/{key}"):
            client = self.client("kafkaconnect")
            bucket = f"arn:{client.meta.partition}:s3:::{self.bucket}"
            client.create_custom_plugin(
                name=name,
                contentType="ZIP",
                location={"s3Location": {"bucketArn": bucket, "fileKey": key}},
                **({"tags": self.tags} if self.tags else {}),
            )
        found = self._settled(name)
        if found is None:
            raise PluginFailed(
                f"Cannot create the custom plugin {name}: it was deleted during its creation.", "Upload it again."
            )
        if found["customPluginState"] != "ACTIVE":
            why = found.get("stateDescription", {}).get("message", "MSK Connect gives no reason")
            raise PluginFailed(
                f"Cannot create the custom plugin {found['customPluginArn']} from s3://{self.bucket}/{key}: it is"
                f" {found['customPluginState']}: {why.rstrip('.')}.",
                "Fix the cause, then upload it again. That replaces the failed plugin.",
            )
        return found

    def _delete(self, name: str, arn: str) -> None:
        with self.translate_errors(f"delete the failed custom plugin {arn}"):
            self.client("kafkaconnect").delete_custom_plugin(customPluginArn=arn)
        self._settled(name)

    def _settled(self, name: str) -> Mapping[str, Any] | None:
        """Wait until no change is in progress; return the description, None if the plugin does not exist."""
        return until(
            lambda: self._described(name),
            lambda found: found is None or found["customPluginState"] not in _IN_PROGRESS,
            seconds=self.change_seconds,
            what=f"the change of custom plugin {name} to end",
            state=lambda found: found and found["customPluginState"],
            hint=self.hint,
            pause_seconds=self.poll_seconds,
        )

    def _described(self, name: str) -> Mapping[str, Any] | None:
        client = self.client("kafkaconnect")
        with self.translate_errors(f"look up the custom plugin {name}"):
            pages = client.get_paginator("list_custom_plugins").paginate(namePrefix=name)
            listed = (each for page in pages for each in page["customPlugins"])
            arn = next((each["customPluginArn"] for each in listed if each["name"] == name), None)
        if arn is None:
            return None
        try:
            with self.translate_errors(f"describe the custom plugin {arn}"):
                return dict(client.describe_custom_plugin(customPluginArn=arn))
        except AwsRequestFailed as error:
            if error.code == "NotFoundException":  # deleted meanwhile
                return None
            raise
