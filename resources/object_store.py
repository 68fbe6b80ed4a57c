"""The object store's bucket as a Dagster resource, for assets, jobs and Spark."""

from __future__ import annotations

from typing import Any, Self

from dagster_aws.s3 import S3Resource
from pydantic import Field, model_validator

_CLIENT_ONLY = ("profile_name", "aws_session_token", "use_unsigned_session", "verify")
"""Fields of S3Resource that only the boto3 client uses. With them, assets would have other access than Spark's jobs."""


class ObjectStore(S3Resource):
    """One bucket. By default it uses AWS's endpoint and the environment's credentials.

    Assets get the boto3 client as from any S3Resource:

        def report(store: ObjectStore) -> None:
            store.get_client().put_object(Bucket=store.bucket, Key="reports/today", Body=b"…")
    """

    bucket: str
    region_name: str | None = "us-east-1"
    aws_secret_access_key: str | None = Field(default=None, repr=False)
    aws_session_token: str | None = Field(default=None, repr=False)
    hint: str = ""

    @model_validator(mode="before")
    @classmethod
    def _same_access_for_all(cls, data: dict[str, Any]) -> dict[str, Any]:
        defaults = {name: S3Resource.model_fields[name].default for name in _CLIENT_ONLY}
        given = [name for name, default in defaults.items() if data.get(name, default) != default]
        if given:
            raise ValueError(
                f"Cannot set {', '.join(given)} on the object store: Spark's jobs do not read these fields. Give the "
                "process an IAM role, or set AWS_PROFILE in the environment."
            )
        return data

    def get_object_to_set_on_execution_context(self) -> Self:
        """Return this resource, not the boto3 client, as `context.resources.store`."""
        return self

    def hadoop_secrets(self) -> dict[str, str]:
        """Return the Hadoop properties with the access keys; empty on AWS.

        Set them inside the JVM, because every user of the machine can read command lines.
        """
        if self.endpoint_url is None:
            return {}
        return {
            "fs.s3a.access.key": self.aws_access_key_id or "",
            "fs.s3a.secret.key": self.aws_secret_access_key or "",
        }

    def spark_options(self) -> dict[str, str]:
        """Return Spark's settings for s3a:// URIs in the bucket, without the access keys; empty on AWS."""
        if self.endpoint_url is None:
            return {}
        prefix = "spark.hadoop.fs.s3a."
        return {
            f"{prefix}endpoint": self.endpoint_url,
            f"{prefix}path.style.access": "true",
            f"{prefix}connection.ssl.enabled": str(self.endpoint_url.startswith("https")).lower(),
        }
