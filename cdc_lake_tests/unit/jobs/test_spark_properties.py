"""Spark's settings: what a batch of the largest records needs has to fit, and times are in UTC."""

from __future__ import annotations

import pytest

from cdc_lake.contract.table import instants
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake.jobs.landing.raw_writer import RawWriter
from cdc_lake.profile_local import JOBS
from resources.spark import properties_files

_GIB = 2**30


def test_a_batch_of_the_largest_records_fits_in_the_memory_of_the_local_jvm() -> None:
    settings = properties_files.read([str(JOBS / "spark.properties"), str(JOBS / "spark-local.properties")])
    assert settings["spark.driver.memory"].endswith("g")
    memory = int(settings["spark.driver.memory"].rstrip("g")) * _GIB  # which bounds the buffers outside of the heap too
    tasks = int(settings["spark.master"].removeprefix("local[").rstrip("]"))
    batch = int(settings["spark.sql.execution.arrow.maxRecordsPerBatch"]) * RawWriter.record_bytes
    # A buffer grows to a power of two, by copying into one of twice the size.
    largest = 1 << (batch - 1).bit_length()
    assert tasks * (largest + largest // 2) <= memory


@pytest.mark.parametrize("files", [["spark.properties"], ["spark.properties", "spark-local.properties"]])
def test_each_jvm_runs_in_utc(files: list[str]) -> None:
    """On EMR, which gets the first file, and in this process; a later file replaces an earlier one's options whole."""
    settings = properties_files.read([str(JOBS / name) for name in files])
    for options in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        assert "-Duser.timezone=UTC" in settings[options].split()


def test_no_other_user_of_this_machine_sends_tasks_to_the_local_jvm() -> None:
    settings = properties_files.read([str(JOBS / "spark.properties"), str(JOBS / "spark-local.properties")])
    assert settings["spark.authenticate"] == "true"


def test_tables_are_made_with_instants_in_utc() -> None:
    assert HudiTable("orders", "s3a://lake/orders", ["id"]).options()[instants.ZONE] == "UTC"
