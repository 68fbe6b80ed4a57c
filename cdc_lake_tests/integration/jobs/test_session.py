"""The Spark session's JVM: what it prints, what it is asked, and room for what it compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.java_gateway import JVMView
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


def test_compiled_code_has_room(engines: Engines) -> None:
    """In the 48 MB that the first compiler has by itself, the JVM throws code away and compiles it anew."""
    jvm = engines.spark._jvm
    assert jvm is not None
    options = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert "-XX:ReservedCodeCacheSize=256m" in options
