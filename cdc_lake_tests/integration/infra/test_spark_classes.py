"""The JVM takes what Spark's jobs load from the file that `cdc-lake setup` made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_lake_tests.integration.jobs.engines import running_spark
from cdc_lake_tests.local_stack import running_stack, scratch_home
from infra.local.artifacts.artifacts import jars
from infra.local.artifacts.java import java_home
from infra.local.artifacts.spark_classes import spark_class_path
from infra.local.stack.attach import load_endpoints
from resources.object_store import ObjectStore


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on a stack."""
    with scratch_home() as home, running_stack(home, ("s3",)):
        at = load_endpoints(home)
        store = ObjectStore(
            bucket="classes", endpoint_url=at.s3_endpoint, aws_access_key_id="a", aws_secret_access_key="b"
        )
        with running_spark(at, store, tmp_path_factory.mktemp("spark")) as session:
            yield session


def test_the_file_is_there_and_used(session: SparkSession) -> None:
    found = spark_class_path(java_home(17), jars("spark")).archive()
    assert found.stat().st_size > 20_000_000
    jvm = session.sparkContext._jvm
    assert jvm is not None
    process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    mapped = {Path(each.path) for each in process.memory_maps()}
    assert found in mapped, "the JVM did not take it: its class path is another one than the training's"


def test_python_workers_begin_with_everything_imported(session: SparkSession) -> None:
    def imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = [name in sys.modules for name in ("pyarrow", "pandas", "boto3", "psycopg2")]
            yield pa.RecordBatch.from_pydict({"found": found})

    rows = session.range(1).mapInArrow(imported, "found boolean").collect()
    assert [row["found"] for row in rows] == [True] * 4


def test_hudi_measures_a_record_without_a_process_for_it(session: SparkSession) -> None:
    jvm = session.sparkContext._jvm
    assert jvm is not None
    # Where another session of this JVM has measured already, nothing would be started in any case.
    assert jvm.java.lang.System.getProperty("jol.skipHotspotSAAttach") == "true"
    process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())
    before = process.cpu_times()
    assert jvm.org.apache.hudi.common.util.ObjectSizeCalculator.getObjectSize("a record") > 0
    after = process.cpu_times()
    assert (after.children_user, after.children_system) == (before.children_user, before.children_system)
