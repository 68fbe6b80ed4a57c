"""The Kafka Connect worker behind `kafkaconnect`: the few requests of its REST interface that MSK Connect makes unseen.

Here: requests and what they come to. Not here: the states that AWS gives a connector (kafkaconnect.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

import httpx

_SECONDS = 30.0


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
    """A worker of Kafka Connect."""

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
    """A worker by its address."""

    url: str

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """See Worker."""
        answer = self._request("PUT", f"{_path(name)}/config", dict(config))
        if answer.status_code == httpx.codes.BAD_REQUEST:
            raise RefusedError(str(answer.json().get("message", answer.text)))
        answer.raise_for_status()

    def status(self, name: str) -> WorkerStatus | None:
        """See Worker."""
        answer = self._request("GET", f"{_path(name)}/status")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        said = answer.raise_for_status().json()
        parts = [said["connector"], *said["tasks"]]
        trace = next((part.get("trace", "") for part in parts if part["state"] == "FAILED"), "")
        return WorkerStatus(said["connector"]["state"], tuple(task["state"] for task in said["tasks"]), trace or "")

    def ask(self, name: str, action: str) -> None:
        """See Worker."""
        method = "POST" if action.startswith("restart") else "PUT"
        self._request(method, f"{_path(name)}/{action}").raise_for_status()

    def delete(self, name: str) -> None:
        """See Worker."""
        answer = self._request("DELETE", _path(name))
        if answer.status_code != httpx.codes.NOT_FOUND:
            answer.raise_for_status()

    def _request(self, method: str, path: str, body: Mapping[str, str] | None = None) -> httpx.Response:
        return httpx.request(method, self.url + path, json=body, timeout=_SECONDS, trust_env=False)


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"
