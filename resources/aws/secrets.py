"""A secret in AWS Secrets Manager (a database login, a salt or a token), as a Dagster resource."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import ClassVar, TypeVar
from urllib.parse import quote

from pydantic import Field

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.errors import AccessRefused, ResourceError

Result = TypeVar("Result")
_HOW_TO_STORE = "Store the value in it: as text, or as JSON with the member password (and username for a database)."


class SecretUnusable(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """A secret does not exist, or has no password."""


@dataclass(frozen=True)
class SecretLogin:
    """The login that a secret contains. `username` is None if the secret is a bare password."""

    username: str | None
    password: str = field(repr=False)


class _LoginCache:
    """The process's cache of logins, by endpoint, region and secret ID."""

    lock = Lock()
    logins: ClassVar[dict[tuple[str | None, str, str], SecretLogin]] = {}


class DatabaseSecret(AwsResource):
    """One secret: JSON with `password` (and `username`), as RDS writes it, or only a text: a password, salt or token.

    Methods raise Unreachable, AccessRefused or AwsRequestFailed if a request to Secrets Manager fails, and
    SecretUnusable; each error names the secret.

    Usage:

        login = DatabaseSecret(region="eu-west-1", secret_id="prod/source").login()
        postgres = Postgres(host="db", user=login.username, password=login.password, database="shop")
    """

    secret_id: str = Field(description="The secret's ARN, or its name.")

    def login(self) -> SecretLogin:
        """Return the login. Reads the secret unless the process has cached it."""
        with _LoginCache.lock:
            found = _LoginCache.logins.get(self._key)
        return found or self._read()

    def use_login(self, use: Callable[[SecretLogin], Result]) -> Result:
        """Call `use` with the login and return its result.

        If `use` raises AccessRefused and the secret has changed since it was cached, `use` is called once more with the
        new login. Raises what `use` raises; AccessRefused names the secret if its current login is rejected.
        """
        with _LoginCache.lock:
            cached = _LoginCache.logins.get(self._key)
        login = cached or self._read()
        try:
            return use(login)
        except AccessRefused as error:
            current = self._read() if cached is not None else login
            if current == login:
                raise self._refused(error) from error
        try:
            return use(current)
        except AccessRefused as error:
            raise self._refused(error) from error

    def connect_reference(self, key: str = "password") -> str:
        """Return the reference to the secret for a connector's configuration; AWS's config provider resolves it.

        The provider's name is `secretsmanager`. Kafka splits the reference at colons, so an ARN is URL-encoded:
        https://github.com/aws-samples/msk-config-providers
        """
        return f"${{secretsmanager:{quote(self.secret_id, safe='/')}:{key}}}"

    @property
    def _key(self) -> tuple[str | None, str, str]:
        return self.endpoint_url, self.region, self.secret_id

    def _refused(self, error: AccessRefused) -> AccessRefused:
        return AccessRefused(f"{error.message} The login comes from the secret {self.secret_id}.", error.hint)

    def _read(self) -> SecretLogin:
        client = self.client("secretsmanager")
        try:
            with self.translate_errors(f"read the secret {self.secret_id}"):
                found = client.get_secret_value(SecretId=self.secret_id)
        except AwsRequestFailed as error:
            if error.code == "ResourceNotFoundException":
                raise SecretUnusable(
                    f"Cannot read the secret {self.secret_id}: it does not exist in {self.region}, or has no value.",
                    _HOW_TO_STORE,
                ) from error
            raise
        login = self._parsed(found.get("SecretString"))
        with _LoginCache.lock:
            _LoginCache.logins[self._key] = login
        return login

    def _parsed(self, text: str | None) -> SecretLogin:
        if not text:
            raise SecretUnusable(
                f"Cannot read the secret {self.secret_id}: it is binary or empty.",
                _HOW_TO_STORE,
            )
        try:
            members = json.loads(text)
        except ValueError:
            members = None
        if not isinstance(members, dict):
            return SecretLogin(None, text)
        password, username = members.get("password"), members.get("username")
        if not isinstance(password, str) or not password:
            raise SecretUnusable(
                f"Cannot read the password in the secret {self.secret_id}: the member password is missing or "
                f"empty (members: {', '.join(sorted(members)) or 'none'}).",
                _HOW_TO_STORE,
            )
        return SecretLogin(username if isinstance(username, str) else None, password)


class _WithoutSecrets(logging.Filter):
    """Drops botocore's debug log records that contain a secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "SecretString" not in record.getMessage()


logging.getLogger("botocore.parsers").addFilter(_WithoutSecrets())
