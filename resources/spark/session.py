"""Start the Spark session of this process. A module of its own, because commands that run no job need no PySpark."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from dagster_pyspark import LazyPySparkResource
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_CACHED_CLASSES = ("functions", "PythonUtils")
"""Classes that PySpark looks up by name for each column that it creates. Each time, the JVM searches some 300 jars,
which takes 1.3 ms, or 0.3 s in each upsert. A class that is an attribute of py4j's JVMView is not looked up again."""


def start(config: Mapping[str, str], secrets: Mapping[str, str]) -> SparkSession:
    """Start the session, or return the current one. `secrets` are Hadoop properties that no command line may show."""
    _launch(config)
    session: SparkSession = LazyPySparkResource(spark_config=dict(config)).spark_session
    hadoop = session.sparkContext._jsc.hadoopConfiguration()  # PySpark has no public API for it
    for name, value in secrets.items():
        hadoop.set(name, value)
    return session


def start_python_worker(session: SparkSession) -> None:
    """Run a job in a Python worker, so that the first real one finds a running worker."""
    session.range(0, 1, 1, 1).mapInArrow(_same, "id bigint").collect()


def _launch(config: Mapping[str, str]) -> None:
    """Start the process's JVM if it is not running.

    Its standard output is discarded: only libraries write to it, such as a class that Hudi uses to measure records,
    with a warning that a debugger and an agent are missing. Logs and the JVM's own messages are on standard error
    (-XX:+DisplayVMOutputToStderr in the properties).
    """
    if SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False).setAll(list(config.items()))
        gateway = launch_gateway(conf, {"stdout": subprocess.DEVNULL})  # type: ignore[no-untyped-call]
        for name in _CACHED_CLASSES:
            setattr(gateway.jvm, name, getattr(gateway.jvm, name))
        SparkContext._ensure_initialized(gateway=gateway)


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
