"""Spark, as a Dagster resource: runs a job `run(session, spec) -> report`.

Here: the in-process session of the local profile. Not here: what the jobs do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from resources.errors import ResourceError
from resources.object_store import ObjectStore

S = TypeVar("S")
R = TypeVar("R")


class LocalSpark(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Spark session in this process, started when the first job needs it and kept warm after that."""

    java_home: str
    jars: str
    """The folder of jars that the jobs add to Spark's own."""
    properties: list[str]
    """Files with Spark's settings (`key value` a line, as spark-submit reads them); later ones win."""
    store: ObjectStore
    log4j: str = ""
    """The JVM's log settings, a log4j2 properties file; Spark's own where it is left out."""
    java_options: str = ""
    """What the JVM is told besides the properties' own options."""
    hint: str = ""

    def run(self, job: Callable[[SparkSession, S], R], spec: S) -> R:
        """Run a job and return its report. Raises what the job raises, JarsMissing where Spark can't start."""
        return job(self.session(), spec)

    def session(self) -> SparkSession:
        """The process's session."""
        jars = sorted(str(path) for path in Path(self.jars).glob("*.jar"))
        if not self.jars or not jars:
            raise ResourceError(f"there are no jars for Spark in {self.jars or 'no folder'!r}; {self.hint}")
        # The JVM and the Python workers are found through the environment of this process only.
        os.environ["JAVA_HOME"] = self.java_home
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        # Behind Spark's own on the class path, as `spark.jars` are, which Spark would copy in every session: seconds.
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(jars)
        config = {
            **{name: value for path in self.properties for name, value in _properties(Path(path)).items()},
            **self.store.spark_options(),
        }
        # The log settings are for the JVM's start, before anything can be set through the session.
        log = f"-Dlog4j2.configurationFile={Path(self.log4j).as_uri()}" if self.log4j else ""
        options = (config.get("spark.driver.extraJavaOptions", ""), log, self.java_options)
        config["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
        with _stdout_as_stderr():
            session: SparkSession = LazyPySparkResource(spark_config=config).spark_session
        hadoop = session.sparkContext._jsc.hadoopConfiguration()  # PySpark has no other way to it
        for name, value in self.store.hadoop_secrets().items():
            hadoop.set(name, value)
        return session

    def stop(self) -> None:
        """End the process's session and close its connections to the store.

        Hadoop keeps a connection per bucket's name for as long as the JVM lives: a later session for the same name on
        another endpoint would be given the one to the old endpoint.
        """
        session = SparkSession.getActiveSession()
        if session is None:
            return
        jvm = session.sparkContext._jvm  # PySpark has no other way to it
        session.stop()
        if jvm is not None:
            jvm.org.apache.hadoop.fs.FileSystem.closeAll()


@contextmanager
def _stdout_as_stderr() -> Iterator[None]:
    """Let processes that are started in the block write to standard error what they mean for standard output.

    The JVM inherits both from this process, and libraries in it print warnings: they must not get between the
    lines of a command whose output a program reads.
    """
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)


def _properties(path: Path) -> dict[str, str]:
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {name: value.strip() for name, value in pairs}
