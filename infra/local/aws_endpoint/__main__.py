"""The endpoint's process: `python -m infra.local.aws_endpoint --port N --trino-url … --connect-url … --state DIR …`.

Here: arguments, wiring and the server. The S3 keys, Connect's password and Trino's token come through the environment
(S3_ACCESS_KEY, S3_SECRET_KEY, CONNECT_PASSWORD, TRINO_TOKEN), so that `ps` doesn't show them.
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from infra.local.aws_endpoint.athena import serve_athena
from infra.local.aws_endpoint.engine import Trino
from infra.local.aws_endpoint.executions import Executions
from infra.local.aws_endpoint.gate import Gate
from infra.local.aws_endpoint.glue import serve_glue
from infra.local.aws_endpoint.glue_state import GlueState
from infra.local.aws_endpoint.results import ResultStore
from infra.local.aws_endpoint.services import Engines, services
from infra.local.aws_endpoint.signature import Signatures

LOOPBACK = "127.0.0.1"


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="infra.local.aws_endpoint", description="Some of AWS's APIs, locally.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--trino-url", required=True)
    parser.add_argument("--s3-endpoint", required=True)
    parser.add_argument("--connect-url", required=True)
    parser.add_argument("--kafka-bootstrap", required=True)
    parser.add_argument("--kafka-cluster", required=True, help="the ARN of the broker's cluster")
    parser.add_argument("--state", type=Path, required=True, help="folder for the catalog and results")
    parser.add_argument("--region", default="us-east-1")
    arguments = parser.parse_args()
    os.umask(0o077)  # the catalog and the results are the user's alone
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else a line for every request
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of statements it knows by their first word only

    state = GlueState(arguments.state / "glue.json", arguments.region)
    state.restore()
    serve_glue(state)
    s3 = boto3.client(
        "s3",
        endpoint_url=arguments.s3_endpoint,
        region_name=arguments.region,
        aws_access_key_id=os.environ["S3_ACCESS_KEY"],
        aws_secret_access_key=os.environ["S3_SECRET_KEY"],
        config=Config(
            connect_timeout=2,
            read_timeout=60,
            retries={"mode": "standard", "max_attempts": 3},
            s3={"addressing_style": "path"},
            proxies={},
        ),
    )
    trino = Trino(arguments.trino_url, os.environ["TRINO_TOKEN"])
    serve_athena(Executions(trino, ResultStore(arguments.state / "results", s3)))
    moto = DomainDispatcherApplication(create_backend_app)
    own = services(
        Engines(
            state=arguments.state,
            region=arguments.region,
            url=f"http://{LOOPBACK}:{arguments.port}",
            trino=trino,
            connect_url=arguments.connect_url,
            connect_password=os.environ["CONNECT_PASSWORD"],
            kafka_bootstrap=arguments.kafka_bootstrap,
            kafka_cluster=arguments.kafka_cluster,
            s3_endpoint=arguments.s3_endpoint,
            s3=s3,
            access_key=os.environ["S3_ACCESS_KEY"],
            secret_key=os.environ["S3_SECRET_KEY"],
        ),
        moto,
    )
    signatures = Signatures(os.environ["S3_ACCESS_KEY"], os.environ["S3_SECRET_KEY"])
    gate = Gate(moto, arguments.region, signatures.holds, own)
    server = make_server(LOOPBACK, arguments.port, gate, threaded=True, request_handler=MotoRequestHandler)
    logging.getLogger("infra.local.aws_endpoint").info("Serving on %s:%d.", LOOPBACK, arguments.port)
    server.serve_forever()


if __name__ == "__main__":
    main()
