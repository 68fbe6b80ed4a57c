"""The object store's bucket as a Dagster resource, for assets, jobs and Spark."""

from __future__ import annotations

from typing import Self

from dagster_aws.s3 import S3Resource
from pydantic import Field


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

    def get_object_to_set_on_execution_context(self) -> Self:
        """Return the resource: `context.resources.store` is the same as the parameter `store`, not the client."""
        return self

    def hadoop_secrets(self) -> dict[str, str]:
        """Return Hadoop's properties with the keys; set them inside the JVM: its command line is world-readable."""
        if self.endpoint_url is None:
            return {}
        return {
            "fs.s3a.access.key": self.aws_access_key_id or "",
            "fs.s3a.secret.key": self.aws_secret_access_key or "",
        }

    def spark_options(self) -> dict[str, str]:
        """Return the settings, except the keys, that Spark needs for s3a:// URIs in the bucket; empty on AWS."""
        if self.endpoint_url is None:
            return {}
        prefix = "spark.hadoop.fs.s3a."
        return {
            f"{prefix}endpoint": self.endpoint_url,
            f"{prefix}path.style.access": "true",
            f"{prefix}connection.ssl.enabled": str(self.endpoint_url.startswith("https")).lower(),
        }
