"""Spark in this process, as a Dagster resource: runs jobs `run(session, spec) -> report`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import dagster as dg

from resources.errors import ResourceError
from resources.object_store import ObjectStore
from resources.spark import properties_files, scratch_folder
from resources.spark.job_interface import JobRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = TypeVar("S")
R = TypeVar("R")

_S3A = "s3a"
"""S3A's subfolder of the folder for temporary files."""
_log = logging.getLogger(__name__)


class _Process:
    """The Spark state of this process: one session at a time, in one JVM."""

    lock = threading.RLock()
    session: SparkSession | None = None
    scratch: Path | None = None
    """The folder for temporary files of all sessions: the JVM can use only one."""
    warming: threading.Thread | None = None


class LocalSpark(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Spark session in this process, started for the first job and kept after that (implements `SparkJobs`).

    Usage:

        spark = LocalSpark(java_home="/usr/lib/jvm/java-17", jars="jars", properties=["spark.properties"], store=store)
        report = spark.run(upsert.run, table.upsert_spec(location(store), owner="me"))
    """

    java_home: str
    jars: str
    """The folder of jars that the jobs need in addition to Spark's."""
    properties: list[str]
    """Files with Spark's settings (`key value` a line, as spark-submit reads them); later ones take precedence."""
    store: ObjectStore
    scratch: str = ""
    """The folder for Spark's temporary files; empty: the system's temporary folder."""
    log4j: str = ""
    """The JVM's log settings, a log4j2 properties file; empty: Spark's own."""
    java_options: str = ""
    """JVM options in addition to those in the properties."""
    hint: str = ""

    def run(self, job: Callable[[SparkSession, S], R], spec: S) -> R:
        """Run a job and return its report. Raises what the job raises, and ResourceError if there are no jars."""
        session = self.session()
        # One scheduler pool per thread, so that jobs of several threads run at the same time.
        session.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)
        return job(session, spec)

    def warm(self) -> None:
        """Start the session and a Python worker in a thread, for the first job.

        Raises nothing: session() repeats a failed start and raises the error.
        """
        # Not in the thread: an interpreter that is exiting imports no module that registers an exit function.
        from resources.spark import session  # noqa: PLC0415 - as in _started

        with _Process.lock:
            if _Process.session is None and _Process.warming is None:
                # Not a daemon: an interpreter that exits during Spark's start would print stack traces.
                _Process.warming = threading.Thread(
                    target=self._warm, args=(session.start_python_worker,), name="spark-warming"
                )
                _Process.warming.start()

    def last_run(self) -> JobRun | None:
        """Return None: jobs run in this process."""
        return None

    def cancel(self) -> None:
        """Cancel all jobs of the process's session."""
        if _Process.session is not None:
            _Process.session.sparkContext.cancelAllJobs()

    def _warm(self, start_python_worker: Callable[[SparkSession], None]) -> None:
        try:
            start_python_worker(self.session())
        except Exception:  # noqa: BLE001 - session() raises the error to its caller
            _log.debug("Cannot start Spark before the first job", exc_info=True)
        finally:
            _Process.warming = None

    def session(self) -> SparkSession:
        """Return the process's session; start it if necessary."""
        with _Process.lock:
            _Process.session = self._started()
            return _Process.session

    def _started(self) -> SparkSession:
        if not self.jars:
            raise ResourceError("Cannot start Spark: no folder with jars is configured.", self.hint)
        jars = sorted(str(path) for path in Path(self.jars).glob("*.jar"))
        if not jars:
            raise ResourceError(f"Cannot start Spark: the folder {self.jars} contains no jars.", self.hint)
        # Spark finds the JVM and the Python workers through this process's environment only.
        os.environ["JAVA_HOME"] = self.java_home
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        # SPARK_DIST_CLASSPATH instead of spark.jars: Spark would copy those jars for each session, which takes seconds.
        # In both cases they are after Spark's own jars on the class path.
        os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(jars)
        scratch = self._scratch()
        config = {
            **properties_files.read(self.properties),
            **self.store.spark_options(),
            **(_local_folders(scratch) if scratch else {}),
        }
        # The JVM reads the log settings at its start, before the session exists.
        log = f"-Dlog4j2.configurationFile={Path(self.log4j).as_uri()}" if self.log4j else ""
        temporary = f'"-Djava.io.tmpdir={scratch}"' if scratch else ""
        options = (config.get("spark.driver.extraJavaOptions", ""), log, temporary, self.java_options)
        config["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
        from resources.spark import session  # noqa: PLC0415 - imports PySpark, which most commands do not need

        return session.start(config, self.store.hadoop_secrets())

    def _scratch(self) -> Path | None:
        """Return the process's folder for temporary files, created if it is missing; None if it is not configured."""
        if not self.scratch:
            return None
        if _Process.scratch is None:
            _Process.scratch = scratch_folder.own_folder(Path(self.scratch))
        # The folders can be deleted while this process runs. The JVM keeps their paths, and S3A writes only into an
        # existing folder.
        for folder in (_Process.scratch.parent, _Process.scratch, _Process.scratch / _S3A):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Spark prefers this variable to its settings; Hudi and Python's workers read only this one.
        os.environ["SPARK_LOCAL_DIRS"] = str(_Process.scratch)
        return _Process.scratch

    def require_alive(self, wait_seconds: float = 0.0) -> None:
        """Raise ResourceError if the session's JVM has ended, or ends within `wait_seconds`."""
        if _Process.session is None:
            return
        gateway = _Process.session.sparkContext._gateway  # PySpark has no public API for it
        if (jvm := getattr(gateway, "proc", None)) is None:
            return
        try:
            code = jvm.wait(wait_seconds)
        except subprocess.TimeoutExpired:
            return
        raise ResourceError(
            f"Cannot run Spark jobs: Spark's JVM (process {jvm.pid}) ended with code {code}.",
            "Start this process again. If the kernel killed the JVM to free memory, lower spark.driver.memory, or"
            " run fewer jobs at once.",
        )

    def stop(self) -> None:
        """End the process's session and close its connections to the store.

        Hadoop caches a connection per bucket name for the JVM's lifetime: a later session for the same name on another
        endpoint would get the connection to the old endpoint.
        """
        if (warming := _Process.warming) is not None:
            warming.join()
        with _Process.lock:
            session, _Process.session = _Process.session, None
            if session is None:
                return
            process = getattr(session.sparkContext._gateway, "proc", None)
            if process is not None and process.poll() is not None:
                return  # the session ended with its JVM, and PySpark's stop() would raise an error of the connection
            jvm = session.sparkContext._jvm  # PySpark has no public API for it
            session.stop()
            if jvm is not None:
                jvm.org.apache.hadoop.fs.FileSystem.closeAll()


def _local_folders(folder: Path) -> dict[str, str]:
    return {
        "spark.local.dir": str(folder),
        "spark.hadoop.hadoop.tmp.dir": str(folder / "hadoop"),
        "spark.hadoop.fs.s3a.buffer.dir": str(folder / _S3A),
    }
