"""S3A's retry settings, shortened for tests with a faulty store."""

from __future__ import annotations

from pyspark.sql import SparkSession

SHORT = {
    "attempts.maximum": "2",
    "retry.limit": "2",
    "retry.interval": "50ms",
    "retry.throttle.limit": "2",
    "retry.throttle.interval": "50ms",
    "connection.timeout": "2000",
}
"""S3A's retry settings with two attempts and short pauses; two tests use the real ones of jobs/spark.properties."""


def shorten(spark: SparkSession, bucket: str) -> None:
    """Shorten S3A's retries for a bucket."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    for name, value in SHORT.items():
        hadoop.set(f"fs.s3a.bucket.{bucket}.{name}", value)
