"""What Spark's Kafka source is told besides what a spec says: how this place authenticates at the brokers.

A spec says which brokers. A cluster's settings say how to speak to them, as `spark.cdc_lake.kafka.<option>`, since that
may be secret and is the same for every job (MSK: SASL_SSL with its IAM module).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

PREFIX = "spark.cdc_lake.kafka."


def options(spark: SparkSession, told: Mapping[str, str]) -> dict[str, str]:
    """The options for `spark.read.format("kafka")`; what the spec tells wins."""
    placed = {n.removeprefix(PREFIX): v for n, v in spark.sparkContext.getConf().getAll() if n.startswith(PREFIX)}
    return {f"kafka.{name}": value for name, value in {**placed, **told}.items()}
