"""Spark's JVM writes the archive of its classes when it ends, and later ones load their classes from it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_lake import jobs
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from cdc_lake_tests.integration.jobs.engines import running_spark
from infra.artifacts import spark_classes
from infra.artifacts.artifacts import jars
from infra.artifacts.java import java_home
from infra.artifacts.spark_classes import archive, java_options
from infra.local.stack.attach import load_endpoints
from resources.object_store import ObjectStore


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Run Spark on a stack."""
    with scratch_home() as home, running_stack(home, ("s3",)):
        at = load_endpoints(home)
        store = ObjectStore(bucket="classes", endpoint_url=at.s3_endpoint, access_key="a", secret_key="b")
        with running_spark(at, store, tmp_path_factory.mktemp("spark")) as session:
            yield session


_SESSION = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.config("spark.driver.extraJavaOptions", sys.argv[1]).getOrCreate()
print(session.sparkContext._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
sys.stdin.read()
"""


@contextmanager
def _jvm(java: Path, options: str) -> Iterator[psutil.Process]:
    """Run a session in a process of its own, and wait until its JVM has ended."""
    environment = {**os.environ, "JAVA_HOME": str(java), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", _SESSION, options]
    with subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as program:
        process = psutil.Process(int(program.stdout.readline()))
        yield process
        program.stdin.close()
    process.wait(timeout=300)


def test_the_first_jvm_writes_the_archive_and_the_next_one_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java, no_jars = java_home(17), tmp_path
    monkeypatch.setattr(spark_classes, "cache_folder", lambda: tmp_path / "a cache")
    path = archive(java, no_jars)
    with _jvm(java, java_options(java, no_jars)):
        assert not path.exists()
    assert path.stat().st_size > 20_000_000
    with _jvm(java, java_options(java, no_jars)) as process:
        mapped = {Path(each.path) for each in process.memory_maps()}
    assert path in mapped, "the JVM does not use the archive"


_MEASURING = """
import sys
from resources.object_store import ObjectStore
from resources.spark.local import LocalSpark
java, jars, *properties = sys.argv[1:]
session = LocalSpark(java_home=java, jars=jars, properties=properties, store=ObjectStore(bucket="none")).session()
jvm = session.sparkContext._jvm
print(jvm.org.apache.hudi.common.util.ObjectSizeCalculator.getObjectSize("a record"))
"""


def test_the_measurement_of_a_record_prints_no_warnings() -> None:
    properties = [str(jobs.FOLDER / f"spark{name}.properties") for name in ("", "-local")]
    command = [sys.executable, "-c", _MEASURING, str(java_home(17)), str(jars("spark")), *properties]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert int(done.stdout) > 0, done.stderr
    assert "# WARNING" not in done.stderr


def test_python_workers_start_with_all_imports(session: SparkSession) -> None:
    def imported(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = [name in sys.modules for name in ("pyarrow", "pandas", "boto3", "psycopg2")]
            yield pa.RecordBatch.from_pydict({"found": found})

    rows = session.range(1).mapInArrow(imported, "found boolean").collect()
    assert [row["found"] for row in rows] == [True] * 4


def test_hudi_measures_a_record_without_starting_a_process(session: SparkSession) -> None:
    jvm = session.sparkContext._jvm
    assert jvm is not None
    # If another session of this JVM has measured already, no process would be started in any case.
    assert jvm.java.lang.System.getProperty("jol.skipHotspotSAAttach") == "true"
    process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    before = process.cpu_times()
    assert jvm.org.apache.hudi.common.util.ObjectSizeCalculator.getObjectSize("a record") > 0
    after = process.cpu_times()
    assert (after.children_user, after.children_system) == (before.children_user, before.children_system)
