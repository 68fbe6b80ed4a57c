"""Dagster's UI and daemon: what a person launches there succeeds, and sensors carry a change without anybody."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import httpx
import psycopg2
import pytest
from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake_tests.e2e.conftest import CommandLine
from infra.local.attach import load_endpoints

_LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
_RUN = "query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


class Ui:
    """Dagster's GraphQL, which its pages use."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/graphql"

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """The answer's data. Raises HTTPError while nobody answers."""
        body = {"query": query, "variables": variables}
        answer = httpx.post(self.url, json=body, timeout=30, trust_env=False).raise_for_status()
        data: dict[str, Any] = answer.json()["data"]
        return data


@pytest.fixture
def ui(cli: CommandLine, demo: dict[str, Any]) -> Iterator[Ui]:
    """`cdc-lake dev` on the stack, after a demo."""
    assert demo["exit_code"] == 0
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    running = cli.start("cdc-lake", "dev", "--port", str(port))
    try:
        found = Ui(port)
        until(lambda: found.ask("{ version }"), bool, 120, httpx.HTTPError)
        yield found
    finally:
        os.killpg(running.pid, signal.SIGINT)
        running.wait(timeout=60)


def until(ask: Callable[[], Any], good: Callable[[Any], bool], seconds: float, *errors: type[Exception]) -> Any:  # noqa: ANN401 - whatever is asked for
    """The first good answer; fails after `seconds`."""
    again = retry_if_result(lambda answer: not good(answer))
    return Retrying(
        retry=again | retry_if_exception_type(errors) if errors else again,
        stop=stop_after_delay(seconds),
        wait=wait_fixed(1),
    )(ask)


@pytest.mark.timeout(600)
def test_a_run_from_the_ui_and_one_from_the_sensors(ui: Ui, cli: CommandLine) -> None:
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "cdc_lake.definitions",
        "pipelineName": "northwind",
    }
    launched = ui.ask(_LAUNCH, params={"selector": selector, "mode": "default", "runConfigData": {}})["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    run = launched["run"]["runId"]
    status = until(
        lambda: ui.ask(_RUN, id=run)["runOrError"]["status"], lambda s: s in {"SUCCESS", "FAILURE", "CANCELED"}, 180
    )
    assert status == "SUCCESS"

    at = load_endpoints(cli.stack.home.path)
    login = {"host": at.postgres_host, "port": at.postgres_port, "user": at.postgres_user, "dbname": "devdb"}
    with (
        closing(psycopg2.connect(**login, password=at.postgres_password.get_secret_value())) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        # More than flush_records changes: the sensor need not wait for flush_seconds.
        cursor.execute(
            "update datalake.orders set required_date = required_date + 1 where order_id between 10300 and 10379"
        )
        cursor.execute("select required_date::text from datalake.orders where order_id = 10350")
        expected = cursor.fetchone()
    assert expected is not None
    until(
        lambda: cli.query("SELECT CAST(required_date AS varchar) AS d FROM cdc_events WHERE order_id = 10350")[0]["d"],
        lambda found: found == expected[0],
        240,
    )
