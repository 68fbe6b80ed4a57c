"""The Spark session's JVM leaves this process's standard output alone."""

from __future__ import annotations

from pathlib import Path

from cdc_lake_tests.integration.jobs.engines import Engines


def test_what_the_jvm_prints_goes_to_standard_error(engines: Engines) -> None:
    jvm = engines.spark._jvm
    assert jvm is not None
    descriptors = Path("/proc") / str(jvm.java.lang.ProcessHandle.current().pid()) / "fd"
    assert (descriptors / "1").readlink() == (descriptors / "2").readlink()
