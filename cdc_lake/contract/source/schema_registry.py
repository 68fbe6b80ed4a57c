"""Client of a schema registry with Confluent's API, which Apicurio Registry offers too."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception,
    retry_if_result,
    stop_after_delay,
    wait_exponential,
)

from cdc_lake.contract.errors import SchemaRegistryError
from cdc_lake.contract.secret_fields import RegistryAuthorization
from cdc_lake.contract.source.avro_records import MAGIC, AvroDecoder, UndecodableError

if TYPE_CHECKING:
    import httpx

SCHEMA_MISSING = 40403
"""The error code of an unknown schema id; a response with status 404 and another code means that the URL is wrong."""
_LOGIN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True)
class RegistryLocation:
    """The API's URL (Apicurio: `…/apis/ccompat/v7`), and the header `Authorization`, empty for no header."""

    url: str
    authorization: RegistryAuthorization = field(default="", repr=False)

    def schemas(self) -> SchemaRegistry:
        """Return a new client, which caches the schemas that it reads."""
        return SchemaRegistry(self.url, self.authorization)


@lru_cache(maxsize=8)
def _decoder(location: RegistryLocation) -> AvroDecoder:
    return AvroDecoder(location.schemas())


def readable(value: bytes, location: RegistryLocation | None) -> bytes:
    """Return a record's value as JSON if it is Avro, else unchanged. Raises what AvroDecoder.decode() raises."""
    if location is None or not value.startswith(MAGIC):
        return value
    return _decoder(location).decode(value).json


def readable_or_bytes(value: bytes | None, location: RegistryLocation | None) -> bytes | None:
    """Return a record's value like readable(), but unchanged if it cannot be decoded."""
    try:
        return None if value is None else readable(value, location)
    except UndecodableError:
        return value


@dataclass(frozen=True)
class SchemaRegistry:
    """Reads schemas and their ids. It can be pickled, for Spark's executors.

    Every method raises SchemaRegistryError if the registry does not answer for `retry_seconds`, or rejects a request.

    Usage:

        registry = SchemaRegistry("http://127.0.0.1:18081/apis/ccompat/v7", "Bearer …")
        registry.schema(7)
    """

    url: str
    """The API's URL; for Apicurio `…/apis/ccompat/v7`."""
    authorization: str = field(default="", repr=False)
    """The header Authorization; empty for a registry that requires none."""
    retry_seconds: float = 30.0
    """How long a request is retried while the registry cannot be reached, or responds with status 5xx."""
    timeout_seconds: float = 10.0
    """The timeout of one request."""
    _schemas: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The cached schemas by id; the schema of an id never changes."""

    def schema(self, schema_id: int) -> str | None:
        """Return the JSON text of a schema; None if the registry has no schema with this id."""
        if schema_id not in self._schemas:
            what = f"schema {schema_id}"
            answer = self._get(f"/schemas/ids/{schema_id}", what)
            if answer.status_code == HTTPStatus.NOT_FOUND and _error_code(answer) == SCHEMA_MISSING:
                return None
            body = self._json(answer, what)
            if not isinstance(body, dict) or not isinstance(body.get("schema"), str):
                raise self._unexpected(answer, what)
            if body.get("references"):
                raise SchemaRegistryError(
                    f"Cannot use schema {schema_id} of {self.url}: it refers to other schemas. Register schemas "
                    "without references."
                )
            self._schemas[schema_id] = body["schema"]
        return self._schemas[schema_id]

    def _get(self, path: str, what: str) -> httpx.Response:
        """Return the response with any status below 500."""
        import httpx  # noqa: PLC0415 - the code location loads this module, and httpx takes 0.2 s

        url = self.url.rstrip("/") + path
        attempts = Retrying(
            stop=stop_after_delay(self.retry_seconds),
            wait=wait_exponential(multiplier=0.2, max=5),
            retry=retry_if_exception(_is_passing) | retry_if_result(_is_server_error),
        )
        headers = {"Authorization": self.authorization} if self.authorization else {}
        try:
            return attempts(httpx.get, url, headers=headers, timeout=self.timeout_seconds, trust_env=False)
        except httpx.LocalProtocolError:
            # The error's text contains the header, a secret, so it must not be chained or printed.
            raise SchemaRegistryError(
                f"Cannot read {what}: the header Authorization for the schema registry at {url} is not a valid header. "
                "Check that it is one line of text."
            ) from None
        except RetryError as error:
            last = error.last_attempt
            cause = last.exception() or f"{last.result().status_code} {last.result().text[:500]}"
            raise SchemaRegistryError(
                f"Cannot read {what}: the schema registry at {url} did not answer for {self.retry_seconds:.0f} s "
                f"({cause}). Nothing was read. Check that it runs (`cdc-lake status`), then run this again."
            ) from error

    def _json(self, answer: httpx.Response, what: str) -> Any:  # noqa: ANN401 - JSON
        """Return the body of a successful response."""
        if answer.status_code in _LOGIN:
            raise SchemaRegistryError(
                f"Cannot read {what}: the schema registry at {answer.url} rejects the credentials "
                f"({answer.status_code}). Check the value of the header Authorization (on AWS in the secret that "
                "CDC_LAKE_REGISTRY_SECRET names)."
            )
        try:
            if answer.status_code == HTTPStatus.OK:
                return answer.json()
        except ValueError:
            pass
        raise self._unexpected(answer, what)

    @staticmethod
    def _unexpected(answer: httpx.Response, what: str) -> SchemaRegistryError:
        return SchemaRegistryError(
            f"Cannot read {what}: {answer.url} returned {answer.status_code} {answer.text[:500]!r}. Check that the URL "
            f"is that of a registry's Confluent-compatible API, and that it has {what}."
        )


def _is_passing(error: BaseException) -> bool:
    import httpx  # noqa: PLC0415 - as above

    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.LocalProtocolError)


def _is_server_error(answer: httpx.Response) -> bool:
    return answer.is_server_error


def _error_code(answer: httpx.Response) -> int | None:
    try:
        code = answer.json()["error_code"]
    except (ValueError, KeyError, TypeError):
        return None
    return code if isinstance(code, int) else None
