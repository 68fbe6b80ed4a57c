"""Dagster's UI and daemon on the end-to-end stack, started by `cdc-lake dev`."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx
import psutil
from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.cli.local_stack.process_session import END_SECONDS, REMAINING_SECONDS

if TYPE_CHECKING:  # conftest.py imports this module
    from cdc_lake_tests.helpers.command_line import CommandLine


class Ui:
    """The UI's address, and its GraphQL API."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """Run a GraphQL query, and return its data. Raises HTTPError while the server does not answer."""
        body = {"query": query, "variables": variables}
        answer = httpx.post(f"{self.address}/graphql", json=body, timeout=30, trust_env=False).raise_for_status()
        data: dict[str, Any] = answer.json()["data"]
        return data


@contextmanager
def running_ui(cli: CommandLine) -> Iterator[Ui]:
    """Run `cdc-lake dev` on the stack on a free port, and interrupt it after the block; no process may be left."""
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
        running.wait(timeout=END_SECONDS + REMAINING_SECONDS + 20)
        assert running.returncode == 0
        assert not _left(cli), "`cdc-lake dev` has left processes running"


def _left(cli: CommandLine) -> list[str]:
    """Return the command lines of the stack's Dagster processes."""
    home = cli.environment["CDC_LAKE_HOME"]
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            if process.environ().get("DAGSTER_HOME") == f"{home}/dagster":
                found.append(" ".join(process.cmdline()))
    return found


def until(ask: Callable[[], Any], good: Callable[[Any], bool], seconds: float, *errors: type[Exception]) -> Any:  # noqa: ANN401 - the answer's type
    """Return the first good answer; fail after `seconds`."""
    again = retry_if_result(lambda answer: not good(answer))
    return Retrying(
        retry=again | retry_if_exception_type(errors) if errors else again,
        stop=stop_after_delay(seconds),
        wait=wait_fixed(1),
    )(ask)
