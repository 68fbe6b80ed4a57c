"""Kafka Connect's REST interface: one method for each request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from tenacity import RetryError, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_exponential

from resources.errors import AccessRefused, ConnectorConfigInvalid, ConnectRequestFailed, Unreachable

if TYPE_CHECKING:
    import httpx

_BUSY = (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE)
UNREACHABLE_SECONDS = 3.0


@dataclass(frozen=True)
class ConnectRestClient:
    """Sends requests to one worker of a Connect cluster. The worker forwards them to the leader.

    A request is repeated for up to `rebalance_seconds` while the workers start or rebalance. Every method can raise
    Unreachable, AccessRefused and ConnectRequestFailed, with `hint` as the advice.
    """

    url: str
    timeout_seconds: float
    rebalance_seconds: float
    hint: str
    login: tuple[str, str] | None = field(default=None, repr=False)
    """User and password; None for a worker without authentication."""

    def config(self, name: str) -> dict[str, str] | None:
        """Return a connector's configuration, None if the connector does not exist."""
        answer = self._request("GET", f"{_path(name)}/config", HTTPStatus.NOT_FOUND)
        return None if answer.status_code == HTTPStatus.NOT_FOUND else dict(answer.json())

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create or update a connector. Raises ConnectorConfigInvalid if the plugin rejects the configuration."""
        answer = self._request("PUT", f"{_path(name)}/config", HTTPStatus.BAD_REQUEST, body=config)
        if answer.status_code == HTTPStatus.BAD_REQUEST:
            raise _rejected(name, answer)

    def create_stopped(self, name: str, config: Mapping[str, str]) -> None:
        """Create a stopped connector (KIP-980); one that already exists is not an error.

        Raises ConnectorConfigInvalid if the plugin rejects the configuration.
        """
        body = {"name": name, "config": dict(config), "initial_state": "STOPPED"}
        answer = self._request("POST", "/connectors", HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, body=body)
        if answer.status_code == HTTPStatus.BAD_REQUEST:
            raise _rejected(name, answer)

    def plugins(self) -> list[object]:
        """Return the connector plugins that the worker has."""
        return list(self._request("GET", "/connector-plugins").json())

    def validate(self, plugin: str, config: Mapping[str, str]) -> object:
        """Return the plugin's validation of a configuration."""
        return self._request("PUT", f"/connector-plugins/{quote(plugin)}/config/validate", body=config).json()

    def status(self, name: str) -> object | None:
        """Return a connector's status, None if the connector does not exist."""
        answer = self._request("GET", f"{_path(name)}/status", HTTPStatus.NOT_FOUND)
        return None if answer.status_code == HTTPStatus.NOT_FOUND else answer.json()

    def offsets(self, name: str) -> object:
        """Return a connector's stored offsets."""
        return self._request("GET", f"{_path(name)}/offsets").json()

    def delete_offsets(self, name: str) -> None:
        """Delete a stopped connector's stored offsets (KIP-875)."""
        self._request("DELETE", f"{_path(name)}/offsets")

    def stop(self, name: str) -> None:
        """Stop a connector: its tasks end, its configuration stays."""
        self._request("PUT", f"{_path(name)}/stop")

    def resume(self, name: str) -> None:
        """Resume a stopped or paused connector."""
        self._request("PUT", f"{_path(name)}/resume")

    def restart_failed(self, name: str) -> None:
        """Restart the connector if it is FAILED, and its tasks that are FAILED; the others continue to run."""
        self._request("POST", f"{_path(name)}/restart?includeTasks=true&onlyFailed=true")

    def delete(self, name: str) -> None:
        """Delete a connector. A missing one is not an error, since an earlier response may have been lost."""
        self._request("DELETE", _path(name), HTTPStatus.NOT_FOUND)

    def _request(
        self, method: str, path: str, *accepted: HTTPStatus, body: Mapping[str, object] | None = None
    ) -> httpx.Response:
        """Send a request; return the response if its status is a success or in `accepted`.

        Every request is idempotent, so it is sent again if its response is lost.
        """
        import httpx  # noqa: PLC0415 - the code location loads this module, and httpx takes 0.2 s

        what = f"{method} {self.url}{path}"
        unreached = Retrying(
            stop=stop_after_delay(UNREACHABLE_SECONDS),
            wait=wait_exponential(multiplier=0.2, max=1),
            retry=retry_if_exception_type(httpx.TransportError),
            reraise=True,
        )
        rebalancing = Retrying(
            stop=stop_after_delay(self.rebalance_seconds),
            wait=wait_exponential(multiplier=0.2, max=2),
            retry=retry_if_result(_is_not_ready),
        )
        try:
            answer: httpx.Response = rebalancing(
                unreached,
                httpx.request,
                method,
                self.url + path,
                json=body,
                auth=self.login,
                timeout=self.timeout_seconds,
                trust_env=False,
            )
        except httpx.TransportError as error:
            raise Unreachable(f"Cannot reach Kafka Connect for {what}: {error}.", self.hint) from error
        except RetryError as error:
            last: httpx.Response = error.last_attempt.result()
            raise ConnectRequestFailed(
                f"Cannot complete {what}: Kafka Connect is still starting or rebalancing after "
                f"{self.rebalance_seconds:.0f} s ({_message(last)}).",
                self.hint,
            ) from error
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            why = f"rejects the login of user {self.login[0]}" if self.login else "requires a password"
            raise AccessRefused(f"Cannot use Kafka Connect: {self.url} {why}.", self.hint)
        if answer.is_success or answer.status_code in accepted:
            return answer
        message = f"Cannot complete {what}: Kafka Connect returned {answer.status_code}: {_message(answer)}."
        raise ConnectRequestFailed(message, self.hint)


def _rejected(name: str, answer: httpx.Response) -> ConnectorConfigInvalid:
    return ConnectorConfigInvalid(
        f"Cannot configure connector {name}: Kafka Connect rejects its configuration: {_message(answer)}. Correct it."
    )


def _is_not_ready(answer: httpx.Response) -> bool:
    """Return whether the worker is starting or rebalancing.

    It reports a rebalance with status 409, 503 or, for some requests, 500. A worker that is starting answers 404 in
    HTML: its web server runs before its REST interface.
    """
    if _exists(answer):
        return False
    rebalancing = answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR and "rebalance" in _message(answer)
    starting = answer.status_code == HTTPStatus.NOT_FOUND and "html" in answer.headers.get("content-type", "")
    return rebalancing or starting or answer.status_code in _BUSY


def _exists(answer: httpx.Response) -> bool:
    """Return whether a 409 means that the connector exists, not a rebalance."""
    return answer.status_code == HTTPStatus.CONFLICT and "already exists" in _message(answer)


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _message(answer: httpx.Response) -> str:
    """Return the worker's error message, without a period at its end."""
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = answer.text[:500]
    return message.rstrip(". \n")
