"""Runs the local AWS API: `python -m infra.local.aws_api --port N --trino-url … --s3-endpoint … --state DIR`.

The S3 keys and Trino's token come from the environment (S3_ACCESS_KEY, S3_SECRET_KEY, TRINO_TOKEN), so that `ps` does
not show them.
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

import boto3
from botocore.config import Config

from infra.local.aws_api.athena.executions import Executions
from infra.local.aws_api.athena.operations import athena_service
from infra.local.aws_api.athena.result_files import ResultFiles
from infra.local.aws_api.athena.trino_engine import Trino
from infra.local.aws_api.glue.catalog import glue_service
from infra.local.aws_api.glue.catalog_file import CatalogFile
from infra.local.aws_api.server import Application, make_aws_server
from infra.local.aws_api.signatures import SigningKeys


def main() -> None:
    """Serve until the process ends."""
    parser = argparse.ArgumentParser(prog="infra.local.aws_api", description="AWS's Glue and Athena APIs, locally.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--trino-url", required=True)
    parser.add_argument("--s3-endpoint", required=True)
    parser.add_argument("--state", type=Path, required=True, help="folder for the catalog and query results")
    parser.add_argument("--region", default="us-east-1")
    args = parser.parse_args()
    os.umask(0o077)  # only the user may read the catalog and the results
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # it logs every request
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that it parses as a command only

    keys = SigningKeys(os.environ["S3_ACCESS_KEY"], os.environ["S3_SECRET_KEY"])
    s3 = boto3.client(
        "s3",
        endpoint_url=args.s3_endpoint,
        region_name=args.region,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        config=Config(
            connect_timeout=2,
            read_timeout=60,
            retries={"mode": "standard", "max_attempts": 3},
            s3={"addressing_style": "path"},
            proxies={},
        ),
    )
    trino = Trino(args.trino_url, os.environ["TRINO_TOKEN"])
    services: dict[str, Application] = {
        "athena": athena_service(Executions(trino, ResultFiles(args.state / "results", s3))),
        "glue": glue_service(CatalogFile(args.state / "glue.json", args.region)),
    }
    server = make_aws_server(args.port, services, args.region, keys)
    logging.getLogger("infra.local.aws_api").info("Serving on port %d.", args.port)
    server.serve_forever()


if __name__ == "__main__":
    main()
