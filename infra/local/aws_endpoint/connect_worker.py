"""The Kafka Connect worker behind `kafkaconnect`: the few requests of its REST interface that MSK Connect makes unseen.

Here: requests and what they come to. Not here: the states that AWS gives a connector (kafkaconnect.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

import httpx
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from infra.local.aws_endpoint.errors import AwsError

_SECONDS = 30.0
_REBALANCE_SECONDS = 15.0
_REBALANCING = frozenset({httpx.codes.CONFLICT, httpx.codes.SERVICE_UNAVAILABLE})


@dataclass(frozen=True)
class WorkerStatus:
    """What the worker says of a connector: its state, and the trace of the first that FAILED, connector or task."""

    state: str
    tasks: tuple[str, ...]
    trace: str = ""

    @property
    def failed(self) -> bool:
        """Whether the connector or a task is FAILED."""
        return "FAILED" in {self.state, *self.tasks}

    @property
    def running(self) -> bool:
        """Whether connector and at least one task run, and nothing else is the case."""
        return bool(self.tasks) and {self.state, *self.tasks} == {"RUNNING"}


class RefusedError(Exception):
    """The worker does not take a configuration; its message."""


class Worker(Protocol):
    """A worker of Kafka Connect. Every method raises AwsError where the worker doesn't answer as it should."""

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create or update a connector. Raises RefusedError."""

    def status(self, name: str) -> WorkerStatus | None:
        """What a connector does, None where there is none."""

    def ask(self, name: str, action: str) -> None:
        """Ask for `pause`, `resume` or `restart`."""

    def delete(self, name: str) -> None:
        """Delete a connector; its offsets stay in the worker's topic."""


@dataclass(frozen=True)
class RestWorker:
    """A worker by its address, with user and password."""

    url: str
    login: tuple[str, str] = field(repr=False)

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """See Worker."""
        answer = self._request("PUT", f"{_path(name)}/config", dict(config))
        if answer.status_code == httpx.codes.BAD_REQUEST:
            raise RefusedError(str(answer.json().get("message", answer.text)))
        self._checked(answer)

    def status(self, name: str) -> WorkerStatus | None:
        """See Worker."""
        answer = self._request("GET", f"{_path(name)}/status")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        said = self._checked(answer).json()
        parts = [said["connector"], *said["tasks"]]
        trace = next((part.get("trace", "") for part in parts if part["state"] == "FAILED"), "")
        return WorkerStatus(said["connector"]["state"], tuple(task["state"] for task in said["tasks"]), trace or "")

    def ask(self, name: str, action: str) -> None:
        """See Worker."""
        method = "POST" if action.startswith("restart") else "PUT"
        self._checked(self._request(method, f"{_path(name)}/{action}"))

    def delete(self, name: str) -> None:
        """See Worker."""
        answer = self._request("DELETE", _path(name))
        if answer.status_code != httpx.codes.NOT_FOUND:
            self._checked(answer)

    def _request(self, method: str, path: str, body: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer; while the worker rebalances, which MSK Connect doesn't show either, it is asked again."""
        again = Retrying(
            stop=stop_after_delay(_REBALANCE_SECONDS),
            wait=wait_fixed(0.2),
            retry=retry_if_result(lambda answer: answer.status_code in _REBALANCING),
        )
        try:
            return again(
                httpx.request, method, self.url + path, json=body, auth=self.login, timeout=_SECONDS, trust_env=False
            )
        except RetryError as error:
            return self._checked(error.last_attempt.result())
        except httpx.TransportError as error:
            raise AwsError(
                "ServiceUnavailableException", f"The Connect worker at {self.url} does not answer: {error}.", status=503
            ) from error

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        said = f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}"
        raise AwsError(
            "InternalServerErrorException", f"The Connect worker at {self.url} answers {said.strip()}", status=500
        )


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"
