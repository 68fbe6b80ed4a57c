"""Spark's Python daemon with the imports of the jobs' workers, so that a forked worker starts at once.

Otherwise each worker imports pyarrow, boto3 and psycopg2 for a second or two, in each session and after each idle
minute. `spark.python.daemon.module` in spark-local.properties names this module. The imports start no thread, so that
forking is safe.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path


def _without_archives() -> None:
    """Remove PySpark's zip files from sys.path; they are copies of the installed package that Spark puts before it.

    Each daemon would compile their modules again, and each fork would read their directories again.
    """
    copies = Path(sysconfig.get_path("purelib"), "pyspark", "python", "lib").resolve()  # the path that Spark uses
    for each in [each for each in sys.path if Path(each).resolve().parent == copies]:
        sys.path.remove(each)
        sys.path_importer_cache.pop(each, None)


_without_archives()

# ruff: noqa: E402 - imported after sys.path is corrected
import pandas  # type: ignore[import-untyped]  # noqa: F401 - pyspark imports it in each worker
from pyspark import worker  # noqa: F401 - what a fork runs
from pyspark.daemon import manager

from cdc_lake.jobs.apply import dead_letter_writer, raw_reader  # noqa: F401 - what executors run, with boto3 and pyarrow
from cdc_lake.jobs.verify import postgres_copy  # noqa: F401 - with psycopg2

if __name__ == "__main__":
    manager()  # type: ignore[no-untyped-call]
