"""Spark's settings: memory for the largest batch, UTC, and authentication."""

from __future__ import annotations

import pytest

from cdc_lake import jobs
from cdc_lake.contract.table import instants
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake.jobs.landing.raw_writer import RawWriter
from resources.spark import properties_files

_GIB = 2**30


def test_the_largest_batch_fits_into_the_memory_of_the_local_jvm() -> None:
    settings = properties_files.read(
        [str(jobs.FOLDER / "spark.properties"), str(jobs.FOLDER / "spark-local.properties")]
    )
    assert settings["spark.driver.memory"].endswith("g")
    memory = int(settings["spark.driver.memory"].rstrip("g")) * _GIB  # also the limit of buffers outside of the heap
    tasks = int(settings["spark.master"].removeprefix("local[").rstrip("]"))
    batch = int(settings["spark.sql.execution.arrow.maxRecordsPerBatch"]) * RawWriter.record_bytes
    # A buffer grows to a power of two, by copying into one of twice the size.
    largest = 1 << (batch - 1).bit_length()
    assert tasks * (largest + largest // 2) <= memory


@pytest.mark.parametrize("files", [["spark.properties"], ["spark.properties", "spark-local.properties"]])
def test_each_jvm_runs_in_utc(files: list[str]) -> None:
    """EMR gets only the first file. An option in a later file replaces the whole option of an earlier file."""
    settings = properties_files.read([str(jobs.FOLDER / name) for name in files])
    for options in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        assert "-Duser.timezone=UTC" in settings[options].split()
    # EMR sets its JVM options there, and Spark puts them before ours.
    assert not [name for name in settings if name.endswith("defaultJavaOptions")]


def test_the_local_jvm_requires_authentication() -> None:
    settings = properties_files.read(
        [str(jobs.FOLDER / "spark.properties"), str(jobs.FOLDER / "spark-local.properties")]
    )
    assert settings["spark.authenticate"] == "true"


def test_tables_are_created_with_instants_in_utc() -> None:
    assert HudiTable("orders", "s3a://lake/orders", ["id"]).options()[instants.ZONE] == "UTC"
