"""The object store's bucket as a Dagster resource, for assets, jobs and Spark."""

from __future__ import annotations

from resources.aws.aws_resource import AwsResource


class ObjectStore(AwsResource):
    """One bucket. By default it uses AWS's endpoint and the environment's credentials.

    Assets of your own get a boto3 client:

        def report(store: ObjectStore) -> None:
            store.client("s3").put_object(Bucket=store.bucket, Key="reports/today", Body=b"…")
    """

    bucket: str

    def hadoop_secrets(self) -> dict[str, str]:
        """Return the Hadoop properties with the access keys; empty on AWS.

        Set them inside the JVM, because every user of the machine can read command lines.
        """
        if self.endpoint_url is None:
            return {}
        return {
            "fs.s3a.access.key": self.access_key or "",
            "fs.s3a.secret.key": self.secret_key or "",
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
