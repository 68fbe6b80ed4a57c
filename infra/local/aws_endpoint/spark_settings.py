"""The Spark settings that a request for a run may contain: an allowlist.

Spark starts other programs, loads other jars and reads other places by settings of many names, and each version adds
some. So only those that our jobs send are passed on: `cdc_lake/jobs/spark.properties` and `resources/emr*.py` name
them.
"""

from __future__ import annotations

from collections.abc import Mapping

_ALLOWED = frozenset(
    {
        "spark.app.name",
        "spark.kryo.registrator",
        "spark.serializer",
        "spark.sql.ansi.enabled",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.extensions",
        "spark.sql.parquet.datetimeRebaseModeInRead",
        "spark.sql.parquet.datetimeRebaseModeInWrite",
        "spark.sql.session.timeZone",
        "spark.sql.shuffle.partitions",
        "spark.hadoop.fs.s3a.attempts.maximum",
        "spark.hadoop.fs.s3a.connection.establish.timeout",
        "spark.hadoop.fs.s3a.connection.timeout",
        "spark.hadoop.fs.s3a.retry.interval",
        "spark.hadoop.fs.s3a.retry.limit",
        "spark.hadoop.fs.s3a.retry.throttle.interval",
        "spark.hadoop.fs.s3a.retry.throttle.limit",
        # What signs Spark in to MSK.
        "spark.cdc_lake.kafka.sasl.client.callback.handler.class",
        "spark.cdc_lake.kafka.sasl.jaas.config",
        "spark.cdc_lake.kafka.sasl.mechanism",
        "spark.cdc_lake.kafka.security.protocol",
    }
)
_ALLOWED_VALUES = {
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
}
"""Options of the JVM can start other code: only those of our jobs are taken, to the letter."""
_WITHOUT_EFFECT = frozenset(
    {
        "spark.archives",
        "spark.driver.cores",
        "spark.driver.memory",
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON",
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON",
        "spark.executor.cores",
        "spark.executor.instances",
        "spark.executor.memory",
        "spark.executorEnv.PYSPARK_PYTHON",
        "spark.master",
        "spark.pyspark.driver.python",
        "spark.pyspark.python",
        "spark.submit.deployMode",
    }
)
"""EMR needs them. Here the endpoint decides on machine, size and interpreter, and drops them."""


def refused(settings: Mapping[str, str]) -> list[str]:
    """The names of the settings that a request must not contain, sorted."""
    return sorted(name for name in settings if not _allowed(name, settings[name]) and name not in _WITHOUT_EFFECT)


def passed_on(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that reach spark-submit."""
    return {name: value for name, value in settings.items() if _allowed(name, value)}


def _allowed(name: str, value: str) -> bool:
    return name in _ALLOWED or _ALLOWED_VALUES.get(name) == value
