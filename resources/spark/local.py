"""Spark, as a Dagster resource: runs a job `run(session, spec) -> report`."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import dagster as dg
import pyarrow as pa
from dagster_pyspark import LazyPySparkResource
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from resources.errors import ResourceError
from resources.object_store import ObjectStore
from resources.spark import properties_files, scratch_folder
from resources.spark.job_interface import JobRun

S = TypeVar("S")
R = TypeVar("R")

_STANDARD_ERROR = 2
_S3A = "s3a"
"""S3A's part of the folder for temporary files."""
_ASKED_OFTEN = ("functions", "PythonUtils")
"""What PySpark asks the JVM for by name whenever a column is made, and the JVM looks for in all of some 300 jars: 1.3
ms each time, 0.3 s of each upsert. What is an attribute of the view is not asked for again."""
_log = logging.getLogger(__name__)


class _Process:
    """What this process has of Spark: one session at a time, in one JVM."""

    lock = threading.RLock()
    session: SparkSession | None = None
    scratch: Path | None = None
    """Of the first session, and of all: the JVM has one folder for temporary files."""
    warming: threading.Thread | None = None


class LocalSpark(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Spark session in this process, started for the first job and kept after that (implements `SparkJobs`)."""

    java_home: str
    jars: str
    """The folder of jars that the jobs add to Spark's own."""
    properties: list[str]
    """Files with Spark's settings (`key value` a line, as spark-submit reads them); later ones win."""
    store: ObjectStore
    scratch: str = ""
    """The folder for what Spark keeps on disk while it works; the system's temporary folder where it is left out."""
    log4j: str = ""
    """The JVM's log settings, a log4j2 properties file; Spark's own where it is left out."""
    java_options: str = ""
    """What the JVM is told besides the properties' own options."""
    hint: str = ""

    def run(self, job: Callable[[SparkSession, S], R], spec: S) -> R:
        """Run a job and return its report. Raises what the job raises, JarsMissing where Spark can't start."""
        return job(self.session(), spec)

    def warm(self) -> None:
        """Start the session and a Python worker beside what the caller goes on with; the first job finds them ready.

        What fails here fails again, and is raised, where the session is asked for.
        """
        with _Process.lock:
            if _Process.session is None and _Process.warming is None:
                # No daemon: an interpreter that ends in the middle of Spark's start leaves its noise behind.
                _Process.warming = threading.Thread(target=self._warm, name="spark-warming")
                _Process.warming.start()

    def last_run(self) -> JobRun | None:
        """None: jobs run in this process."""
        return None

    def _warm(self) -> None:
        try:
            self.session().range(0, 1, 1, 1).mapInArrow(_same, "id bigint").collect()
        except Exception:  # noqa: BLE001 - session() raises the error to its caller
            _log.debug("Spark could not be started ahead", exc_info=True)
        finally:
            _Process.warming = None

    def session(self) -> SparkSession:
        """The process's session."""
        with _Process.lock:
            _Process.session = self._started()
            return _Process.session

    def _started(self) -> SparkSession:
        jars = sorted(str(path) for path in Path(self.jars).glob("*.jar"))
        if not self.jars or not jars:
            raise ResourceError(f"there are no jars for Spark in {self.jars or 'no folder'!r}; {self.hint}")
        # The JVM and the Python workers are found through the environment of this process only.
        os.environ["JAVA_HOME"] = self.java_home
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        # Behind Spark's own on the class path, as `spark.jars` are, which Spark would copy in every session: seconds.
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(jars)
        scratch = self._scratch()
        config = {
            **properties_files.read(self.properties),
            **self.store.spark_options(),
            **(_local_folders(scratch) if scratch else {}),
        }
        # The log settings are for the JVM's start, before anything can be set through the session.
        log = f"-Dlog4j2.configurationFile={Path(self.log4j).as_uri()}" if self.log4j else ""
        temporary = f'"-Djava.io.tmpdir={scratch}"' if scratch else ""
        options = (config.get("spark.driver.extraJavaOptions", ""), log, temporary, self.java_options)
        config["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
        _launch(config)
        session: SparkSession = LazyPySparkResource(spark_config=config).spark_session
        hadoop = session.sparkContext._jsc.hadoopConfiguration()  # PySpark has no other way to it
        for name, value in self.store.hadoop_secrets().items():
            hadoop.set(name, value)
        return session

    def _scratch(self) -> Path | None:
        """The process's folder, which is there; None where no folder is asked for."""
        if not self.scratch:
            return None
        if _Process.scratch is None:
            _Process.scratch = scratch_folder.own_folder(Path(self.scratch))
        # A state folder can be deleted while this process lives; the JVM keeps the folder's name, and S3A writes only
        # where its own folder exists.
        for folder in (_Process.scratch.parent, _Process.scratch, _Process.scratch / _S3A):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Spark prefers it to its settings; Hudi and Python's workers know this only.
        os.environ["SPARK_LOCAL_DIRS"] = str(_Process.scratch)
        return _Process.scratch

    def stop(self) -> None:
        """End the process's session and close its connections to the store.

        Hadoop keeps a connection per bucket's name for as long as the JVM lives: a later session for the same name on
        another endpoint would be given the one to the old endpoint.
        """
        if (warming := _Process.warming) is not None:
            warming.join()
        with _Process.lock:
            session, _Process.session = _Process.session, None
            if session is None:
                return
            jvm = session.sparkContext._jvm  # PySpark has no other way to it
            session.stop()
            if jvm is not None:
                jvm.org.apache.hadoop.fs.FileSystem.closeAll()


def _local_folders(folder: Path) -> dict[str, str]:
    return {
        "spark.local.dir": str(folder),
        "spark.hadoop.hadoop.tmp.dir": str(folder / "hadoop"),
        "spark.hadoop.fs.s3a.buffer.dir": str(folder / _S3A),
    }


def _launch(config: Mapping[str, str]) -> None:
    """Start the process's JVM, if it has none. What libraries in it print as output goes to standard error: warnings
    must not get between the lines of a command whose output a program reads.
    """
    if SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False).setAll(list(config.items()))
        gateway = launch_gateway(conf, {"stdout": _STANDARD_ERROR})  # type: ignore[no-untyped-call]
        for name in _ASKED_OFTEN:
            setattr(gateway.jvm, name, getattr(gateway.jvm, name))
        SparkContext._ensure_initialized(gateway=gateway)


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
