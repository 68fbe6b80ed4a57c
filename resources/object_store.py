"""The object store, as a Dagster resource: where the bucket is, for assets, jobs and Spark alike.

Here: address and credentials. Not here: reading and writing, which the contract does.
"""

from __future__ import annotations

import dagster as dg
from pydantic import Field


class ObjectStore(dg.ConfigurableResource):  # type: ignore[type-arg]
    """One bucket. Without an endpoint and keys it is AWS's, with the credentials of the environment."""

    bucket: str
    region: str = "us-east-1"
    endpoint_url: str | None = None
    access_key: str | None = None
    secret_key: str | None = Field(default=None, repr=False)
    hint: str = ""

    def hadoop_secrets(self) -> dict[str, str]:
        """Hadoop's properties with the keys; to be set inside the running JVM, whose command line anybody can read."""
        if self.endpoint_url is None:
            return {}
        return {"fs.s3a.access.key": self.access_key or "", "fs.s3a.secret.key": self.secret_key or ""}

    def spark_options(self) -> dict[str, str]:
        """What Spark needs, besides the keys, to reach the bucket by s3a:// URIs; empty on AWS."""
        if self.endpoint_url is None:
            return {}
        prefix = "spark.hadoop.fs.s3a."
        return {
            f"{prefix}endpoint": self.endpoint_url,
            f"{prefix}path.style.access": "true",
            f"{prefix}connection.ssl.enabled": str(self.endpoint_url.startswith("https")).lower(),
        }
