"""The Spark server of `cdc-lake dev`: `python -m cdc_lake.spark_server SOCKET VERSION OWNER`.

The first run that needs Spark starts it (resources/spark/job_server/served.py).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from cdc_lake import profile
from resources.spark.job_server.served import ServedSpark
from resources.spark.job_server.server import JobServer


def main(arguments: Sequence[str]) -> int:
    """Serve jobs at a socket until the process `OWNER` has ended, or until a request has another version."""
    path, version, owner = arguments
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    served = profile.spark()
    if not isinstance(served, ServedSpark):
        raise TypeError(f"the profile's Spark is a {type(served).__name__}, which needs no server")
    with JobServer(Path(path), served.spark, version, int(owner)) as server:
        served.spark.warm()
        server.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
