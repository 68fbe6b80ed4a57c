"""The Spark session's JVM: time zone, output, JVM lookups, private files, authentication and code cache."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from py4j.java_gateway import JVMView
from pyspark import StorageLevel
from pyspark.sql.functions import col, concat, lit, when

from cdc_lake_tests.integration.jobs.engines import Engines

TESTS_IN_CI = 3


def test_output_of_libraries_is_discarded_and_messages_of_the_jvm_are_not(job_engines: Engines) -> None:
    jvm = job_engines.spark._jvm
    assert jvm is not None
    process = Path("/proc") / str(jvm.java.lang.ProcessHandle.current().pid())
    assert (process / "fd" / "1").readlink() == Path("/dev/null")
    assert (process / "fd" / "2").readlink() != Path("/dev/null")
    assert b"-XX:+DisplayVMOutputToStderr" in (process / "cmdline").read_bytes()


def test_columns_are_built_without_jvm_lookups(job_engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lookup searches all jars, and an upsert builds some 240 columns."""
    lookups: list[str] = []
    get = JVMView.__getattr__

    def recorded(view: JVMView, name: str) -> object:
        lookups.append(name)
        return get(view, name)

    monkeypatch.setattr(JVMView, "__getattr__", recorded)
    rows = job_engines.spark.range(3).select(when(col("id") > 1, lit("many")).otherwise(concat(lit("few"))))
    assert len(rows.columns) == 1
    assert lookups == []


def test_sparks_files_are_private(job_engines: Engines) -> None:
    context, jvm = job_engines.spark.sparkContext, job_engines.spark._jvm
    assert jvm is not None
    scratch = Path(context.getConf().get("spark.local.dir") or "")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (scratch.parent, scratch)] == [0o700, 0o700]
    kept = job_engines.spark.range(1000).repartition(4).persist(StorageLevel.DISK_ONLY)
    try:
        assert kept.count() == 1000
        files = [path for path in scratch.rglob("*") if path.is_file()]
        assert any(path.name.startswith("shuffle_") for path in files)
        assert any(path.name.startswith("rdd_") for path in files)
    finally:
        kept.unpersist()
    hadoop = context._jsc.hadoopConfiguration()
    for name in ("fs.s3a.buffer.dir", "hadoop.tmp.dir"):
        assert Path(hadoop.get(name)).is_relative_to(scratch), name
    assert jvm.java.lang.System.getProperty("java.io.tmpdir") == str(scratch)
    assert jvm.java.lang.System.getenv("SPARK_LOCAL_DIRS") == str(scratch)


def test_connections_to_the_session_require_its_secret(job_engines: Engines) -> None:
    jvm = job_engines.spark._jvm
    assert jvm is not None
    assert jvm.org.apache.spark.SparkEnv.get().securityManager().isAuthenticationEnabled()


def test_the_code_cache_has_256_mb(job_engines: Engines) -> None:
    """With the default of 48 MB for one compiler, the JVM evicts compiled code and compiles it again."""
    jvm = job_engines.spark._jvm
    assert jvm is not None
    options = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert "-XX:ReservedCodeCacheSize=256m" in options


def test_the_jvm_runs_in_utc(job_engines: Engines) -> None:
    jvm = job_engines.spark._jvm
    assert jvm is not None
    assert jvm.java.util.TimeZone.getDefault().getID() == "UTC"
