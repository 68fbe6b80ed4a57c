"""The Spark server of `cdc-lake dev`: `python -m cdc_lake.spark_server SOCKET VERSION OWNER`.

The first run that needs Spark starts it (resources/spark/job_server/client.py).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from cdc_lake import profile
from cdc_lake.profile_local import SPARK_SOCKET
from resources.errors import ResourceError
from resources.spark.job_server.client import SparkServerClient
from resources.spark.job_server.server import JobServer


def main(arguments: Sequence[str]) -> int:
    """Serve jobs at a socket until the process `OWNER` has ended, or until a request has another version."""
    path, version, owner = arguments
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    served = profile.spark()
    if not isinstance(served, SparkServerClient):
        raise ResourceError(
            f"Cannot start the Spark server: {SPARK_SOCKET} is not set.", "Run `cdc-lake dev`, which sets it."
        )
    with JobServer(Path(path), served.spark, version, int(owner)) as server:
        served.spark.warm()
        server.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
