"""Jobs for tests of the Spark server. The server imports them by name, so they are not in a test module."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LeaseLostError


@dataclass(frozen=True)
class Session:
    """A server's process id, the id of its Spark application, the process id of its JVM, and the number of its jobs."""

    process: int
    application: str
    jvm: int
    active_jobs: int


def session(spark: SparkSession, _spec: None) -> Session:
    """Return the session that runs this job."""
    context = spark.sparkContext
    return Session(
        os.getpid(),
        context.applicationId,
        SparkContext._gateway.proc.pid,  # type: ignore[union-attr]
        len(context.statusTracker().getActiveJobsIds()),
    )


def count(spark: SparkSession, rows: int) -> int:
    """Count rows with a Spark job."""
    return spark.range(rows).count()


def fail(_spark: SparkSession, message: str) -> None:
    """Raise an error of the contract."""
    raise LeaseLostError(message)


class _OddError(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def fail_oddly(_spark: SparkSession, _spec: None) -> None:
    """Raise an error that cannot be sent."""
    raise _OddError("an odd", "error")


def wait(spark: SparkSession, folder: Path) -> None:
    """Run a Spark job that creates the file `started`, and runs until the file `end` exists."""
    spark.range(0, 1, 1, 1).mapInArrow(partial(_until_end, folder), "id bigint").collect()


def _until_end(folder: Path, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    (folder / "started").touch()
    while not (folder / "end").exists():
        time.sleep(0.05)
    yield from batches
