"""Spark's Python daemon with what the jobs' workers import already imported, so that a fork of it begins at once.

A worker by itself takes a second or two for pyarrow, boto3 and psycopg2, in every session and after every idle minute.
Named by `spark.python.daemon.module` in spark-local.properties. Importing starts no thread, so that forking is safe.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path


def _without_archives() -> None:
    """Forget the zip files with PySpark that Spark puts before the installed one, of which they are a copy.

    Modules in them are compiled anew in each daemon, and each fork reads their tables of contents once more.
    """
    copies = Path(sysconfig.get_path("purelib"), "pyspark", "python", "lib").resolve()  # as Spark names them
    for each in [each for each in sys.path if Path(each).resolve().parent == copies]:
        sys.path.remove(each)
        sys.path_importer_cache.pop(each, None)


_without_archives()

# ruff: noqa: E402 - they are to be found in the right place
import pandas  # type: ignore[import-untyped]  # noqa: F401 - asked for in each worker by pyspark
from pyspark import worker  # noqa: F401 - what a fork runs
from pyspark.daemon import manager

from cdc_lake.jobs.apply import dead_letter_writer, raw_reader  # noqa: F401 - what executors run, with boto3 and pyarrow
from cdc_lake.jobs.verify import postgres_copy  # noqa: F401 - with psycopg2

if __name__ == "__main__":
    manager()  # type: ignore[no-untyped-call]
