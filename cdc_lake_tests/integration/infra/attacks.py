"""Requests of other users of the machine, and of pages in the user's browser, to the stack's servers."""

from __future__ import annotations

import base64
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

from infra.local.stack.endpoints import BUCKET, Endpoints
from resources.waiting import until

CALLS: dict[str, Callable[[Any], Any]] = {
    "athena": lambda client: client.start_query_execution(
        QueryString="SELECT 1", ResultConfiguration={"OutputLocation": f"s3://{BUCKET}/attacks/"}
    ),
    "glue": lambda client: client.get_databases(),
}
"""One call of each service of the local AWS API."""

HOST = "evil.example"
PAGES = {
    "a rebound name": {"Host": HOST},
    "a rebound name with its origin": {"Host": f"{HOST}:1", "Origin": f"http://{HOST}:1"},
    "another origin": {"Origin": f"http://{HOST}"},
    "a sandboxed frame": {"Origin": "null"},
}
"""Headers of requests that a browser sends for pages of another origin."""


def client(at: Endpoints, service: str, secret: str | None = None) -> Any:  # noqa: ANN401 - not all have stubs
    """Return a boto3 client of the local AWS API with the stack's keys, or with another secret key."""
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=at.aws_endpoint,
        region_name=at.region,
        aws_access_key_id=at.s3_access_key,
        aws_secret_access_key=secret or at.s3_secret_key.get_secret_value(),
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )


def send(method: str, url: str, headers: dict[str, str], **more: Any) -> httpx.Response:  # noqa: ANN401 - httpx's
    """Send a request without credentials."""
    return httpx.request(method, url, headers=headers, timeout=30, trust_env=False, **more)


def upgrade(url: str, headers: dict[str, str]) -> int:
    """Request a websocket for GraphQL subscriptions, and return the status of the answer."""
    own = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode()}
    websocket = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Protocol": "graphql-ws"}
    with httpx.stream("GET", url, headers={**own, **websocket, **headers}, timeout=30, trust_env=False) as answer:
        return answer.status_code


@contextmanager
def dagster_webserver(folder: Path) -> Iterator[str]:
    """Run our web server of Dagster without a code location, and yield its address."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    arguments = ("-m", "cdc_lake.webserver", "--empty-workspace", "--port", str(port))
    process = subprocess.Popen([sys.executable, *arguments], env={"DAGSTER_HOME": str(folder)}, cwd=folder)

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/server_info", trust_env=False).is_success
        except httpx.TransportError:
            return False

    try:
        until(answers, bool, seconds=120, what="Dagster's web server to answer", pause_seconds=0.2)
        yield url
    finally:
        process.terminate()
        process.wait(30)
