"""Options of Spark's Kafka source, from a job's spec and the cluster's settings.

A spec names the brokers. The cluster's settings `spark.cdc_lake.kafka.<option>` contain the authentication, which may
be secret, and is the same for every job (MSK: SASL_SSL with its IAM module).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

PREFIX = "spark.cdc_lake.kafka."


def options(spark: SparkSession, given: Mapping[str, str]) -> dict[str, str]:
    """Return the options for `spark.read.format("kafka")`; `given`, from the spec, overrides the cluster's settings."""
    cluster = {n.removeprefix(PREFIX): v for n, v in spark.sparkContext.getConf().getAll() if n.startswith(PREFIX)}
    return {f"kafka.{name}": value for name, value in {**cluster, **given}.items()}
