"""A database's password in AWS Secrets Manager, as a Dagster resource."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar, TypeVar
from urllib.parse import quote

from pydantic import Field

from resources.aws.client import AwsRequestFailed, AwsResource
from resources.errors import AccessRefused, ResourceError

Used = TypeVar("Used")


class SecretUnusable(ResourceError):  # noqa: N818 - it says what happened, as all of errors.py do
    """A secret is not there, or has no password."""


@dataclass(frozen=True)
class SecretLogin:
    """What a secret has of a login. A secret that is nothing but a password has no user."""

    username: str | None
    password: str = field(repr=False)


class _Kept:
    """What this process has read, by endpoint, region and secret."""

    lock = Lock()
    logins: ClassVar[dict[tuple[str | None, str, str], SecretLogin]] = {}


class DatabaseSecret(AwsResource):
    """One secret: JSON with `username` and `password`, as RDS writes it, or the password alone.

    Methods raise Unreachable, AccessRefused or AwsRequestFailed where Secrets Manager does not comply, and
    SecretUnusable; the secret is named in each.
    """

    secret_id: str = Field(description="The secret's ARN, or its name.")

    def login(self) -> SecretLogin:
        """Return what the secret has, as this process has read it last."""
        with _Kept.lock:
            found = _Kept.logins.get(self._key)
        return found or self._read()

    def signed_in(self, use: Callable[[SecretLogin], Used]) -> Used:
        """Return what `use` makes of the login. Where it raises AccessRefused, and the secret has changed since it was
        read, it is called once more.

        Raises AccessRefused with the secret's name where the secret as it is now is refused, and what `use` raises.
        """
        with _Kept.lock:
            kept = _Kept.logins.get(self._key)
        found = kept or self._read()
        try:
            return use(found)
        except AccessRefused as error:
            now = self._read() if kept is not None else found
            if now == found:
                raise self._refused(error) from error
        try:
            return use(now)
        except AccessRefused as error:
            raise self._refused(error) from error

    def connect_reference(self, key: str = "password") -> str:
        """Return how a connector's configuration refers to it, by AWS's config provider under `secretsmanager`.

        Kafka takes a colon for the end of the secret's name, so an ARN is URL-encoded, as the provider has it:
        https://github.com/aws-samples/msk-config-providers
        """
        return f"${{secretsmanager:{quote(self.secret_id, safe='/')}:{key}}}"

    @property
    def _key(self) -> tuple[str | None, str, str]:
        return self.endpoint_url, self.region, self.secret_id

    def _refused(self, error: AccessRefused) -> AccessRefused:
        return AccessRefused(f"{error.message} The login is that of the secret {self.secret_id}.", error.hint)

    def _read(self) -> SecretLogin:
        client = self.client("secretsmanager")
        try:
            with self.explained(f"Reading the secret {self.secret_id}"):
                told = client.get_secret_value(SecretId=self.secret_id)
        except AwsRequestFailed as error:
            if error.code == "ResourceNotFoundException":
                raise SecretUnusable(
                    f"There is no secret {self.secret_id} in {self.region}, or it has no value.",
                    "Put the login into it: JSON with username and password.",
                ) from error
            raise
        login = self._parsed(told.get("SecretString"))
        with _Kept.lock:
            _Kept.logins[self._key] = login
        return login

    def _parsed(self, text: str | None) -> SecretLogin:
        if not text:
            raise SecretUnusable(f"The secret {self.secret_id} is binary or empty.", "Store the login as text.")
        try:
            told = json.loads(text)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            return SecretLogin(None, text)
        password, username = told.get("password"), told.get("username")
        if not isinstance(password, str) or not password:
            raise SecretUnusable(
                f"The secret {self.secret_id} has no password; it has {', '.join(sorted(told)) or 'nothing'}.",
                "Its JSON needs the members username and password.",
            )
        return SecretLogin(username if isinstance(username, str) else None, password)


class _WithoutSecrets(logging.Filter):
    """Keeps botocore from writing down, where somebody debugs, the answers that have one."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "SecretString" not in record.getMessage()


logging.getLogger("botocore.parsers").addFilter(_WithoutSecrets())
