"""A Python daemon for Spark that imports the modules of the jobs' workers before it forks them.

Otherwise each worker would import pyarrow, boto3 and psycopg2 for a second or two, in each session and after each idle
minute. `spark.python.daemon.module` in spark-local.properties names this module. The imports start no threads, so that
forking is safe.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path


def _remove_archives() -> None:
    """Remove PySpark's zip files from sys.path: copies of the installed package, which Spark puts before it.

    Otherwise each daemon would compile their modules again, and each fork would read their directories again.
    """
    copies = Path(sysconfig.get_path("purelib"), "pyspark", "python", "lib").resolve()  # the path that Spark uses
    for entry in [entry for entry in sys.path if Path(entry).resolve().parent == copies]:
        sys.path.remove(entry)
        sys.path_importer_cache.pop(entry, None)


_remove_archives()

# ruff: noqa: E402 - import only after sys.path is corrected
import pandas  # type: ignore[import-untyped]  # noqa: F401 - pyspark imports it in each worker
from pyspark import worker  # noqa: F401 - each fork runs it
from pyspark.daemon import manager

from cdc_lake.jobs.apply import dead_letter_writer, raw_reader  # noqa: F401 - executors run them; boto3 and pyarrow
from cdc_lake.jobs.landing import topic_reader  # noqa: F401 - executors run it; confluent_kafka
from cdc_lake.jobs.verify import postgres_copy  # noqa: F401 - executors run it; psycopg2

if __name__ == "__main__":
    manager()  # type: ignore[no-untyped-call]
