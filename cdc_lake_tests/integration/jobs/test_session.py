"""The Spark session's JVM: its time zone, what it prints, what it is asked, and room for what it compiles."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from py4j.java_gateway import JVMView
from pyspark import StorageLevel
from pyspark.sql.functions import col, concat, lit, when

from cdc_lake_tests.integration.jobs.engines import Engines


def test_what_the_jvm_prints_goes_to_standard_error(engines: Engines) -> None:
    jvm = engines.spark._jvm
    assert jvm is not None
    descriptors = Path("/proc") / str(jvm.java.lang.ProcessHandle.current().pid()) / "fd"
    assert (descriptors / "1").readlink() == (descriptors / "2").readlink()


def test_columns_do_not_ask_where_sparks_functions_are(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each such question is a search through all jars, and an upsert makes some 240 columns."""
    asked: list[str] = []
    ask = JVMView.__getattr__

    def told(view: JVMView, name: str) -> object:
        asked.append(name)
        return ask(view, name)

    monkeypatch.setattr(JVMView, "__getattr__", told)
    rows = engines.spark.range(3).select(when(col("id") > 1, lit("many")).otherwise(concat(lit("few"))))
    assert len(rows.columns) == 1
    assert asked == []


def test_what_spark_keeps_on_disk_is_closed_to_other_users(engines: Engines) -> None:
    context, jvm = engines.spark.sparkContext, engines.spark._jvm
    assert jvm is not None
    scratch = Path(context.getConf().get("spark.local.dir") or "")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (scratch.parent, scratch)] == [0o700, 0o700]
    kept = engines.spark.range(1000).repartition(4).persist(StorageLevel.DISK_ONLY)
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


def test_who_connects_to_the_session_has_to_know_its_secret(engines: Engines) -> None:
    jvm = engines.spark._jvm
    assert jvm is not None
    assert jvm.org.apache.spark.SparkEnv.get().securityManager().isAuthenticationEnabled()


def test_compiled_code_has_room(engines: Engines) -> None:
    """In the 48 MB that the first compiler has by itself, the JVM throws code away and compiles it anew."""
    jvm = engines.spark._jvm
    assert jvm is not None
    options = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert "-XX:ReservedCodeCacheSize=256m" in options


def test_it_runs_in_utc(engines: Engines) -> None:
    jvm = engines.spark._jvm
    assert jvm is not None
    assert jvm.java.util.TimeZone.getDefault().getID() == "UTC"
