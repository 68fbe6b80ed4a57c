"""Logins from Secrets Manager: cached, read again after a refused login, and never logged."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from cdc_lake_tests.fakes.server import serving
from infra.local.aws_api.server import Environ, StartResponse
from resources.aws.secrets import DatabaseSecret, SecretLogin, SecretUnusable
from resources.errors import AccessRefused, Unreachable
from resources.postgres.connection import Login
from resources.postgres.resource import Postgres

REGION = "us-east-1"
PASSWORD = "corr3ct-h0rse"


class CountingSecretsManager:
    """A fake Secrets Manager; `reads` counts the reads of secrets."""

    def __init__(self) -> None:
        self.reads = 0
        self.url = ""
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Any:  # noqa: ANN401 - WSGI
        self.reads += environ.get("HTTP_X_AMZ_TARGET") == "secretsmanager.GetSecretValue"
        return self._moto(environ, start_response)

    def put(self, value: object, name: str | None = None) -> str:
        """Create a secret, or change the secret with this ARN; return its ARN."""
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        client = boto3.client("secretsmanager", endpoint_url=self.url, region_name=REGION, **keys)  # type: ignore[call-overload]
        text = value if isinstance(value, str) else json.dumps(value)
        if name is None:
            return str(client.create_secret(Name=f"shop-{uuid.uuid4()}", SecretString=text)["ARN"])
        return str(client.put_secret_value(SecretId=name, SecretString=text)["ARN"])


@pytest.fixture(scope="module")
def server() -> Iterator[CountingSecretsManager]:
    """The fake, listening."""
    fake = CountingSecretsManager()
    with serving({"secretsmanager": fake}) as url:
        fake.url = url
        yield fake


@pytest.fixture
def aws(server: CountingSecretsManager) -> CountingSecretsManager:
    """The fake with its count reset."""
    server.reads = 0
    return server


def secret(aws: CountingSecretsManager, arn: str, key: str = "key") -> DatabaseSecret:
    """Return the resource for this secret."""
    return DatabaseSecret(endpoint_url=aws.url, access_key=key, secret_key="secret", attempts=1, secret_id=arn)


def test_a_secret_of_rds_is_a_login(aws: CountingSecretsManager) -> None:
    arn = aws.put({"engine": "postgres", "username": "debezium", "password": PASSWORD, "port": 5432})
    assert secret(aws, arn).login() == SecretLogin("debezium", PASSWORD)


@pytest.mark.parametrize("text", [PASSWORD, "12345", '"quoted'])
def test_a_plain_password_is_a_login_without_user(aws: CountingSecretsManager, text: str) -> None:
    assert secret(aws, aws.put(text)).login() == SecretLogin(None, text)


def test_a_secret_is_read_once_per_process(aws: CountingSecretsManager) -> None:
    arn = aws.put(PASSWORD)
    for _ in range(3):
        secret(aws, arn).login()
    assert secret(aws, arn).use_login(lambda found: found.password) == PASSWORD
    assert aws.reads == 1


def test_a_rotated_secret_is_read_again(aws: CountingSecretsManager) -> None:
    arn = aws.put({"username": "a", "password": "old"})
    secret(aws, arn).login()
    aws.put({"username": "b", "password": "new"}, arn)
    tried: list[str] = []

    def sign_in(found: SecretLogin) -> str | None:
        tried.append(found.password)
        if found.password == "old":
            raise AccessRefused("PostgreSQL refuses user a.")
        return found.username

    assert secret(aws, arn).use_login(sign_in) == "b"
    assert secret(aws, arn).use_login(sign_in) == "b"
    assert (tried, aws.reads) == (["old", "new", "new"], 2)


@pytest.mark.parametrize("read_before", [False, True])
def test_a_refused_current_login_names_the_secret(aws: CountingSecretsManager, read_before: bool) -> None:
    arn = aws.put(PASSWORD)
    if read_before:
        secret(aws, arn).login()
    tried: list[str] = []

    def refuse(found: SecretLogin) -> None:
        tried.append(found.password)
        raise AccessRefused("PostgreSQL at db:5432 refuses user a.", "Ask operations.")

    with pytest.raises(AccessRefused, match=rf"refuses user a\. The login comes from the secret {arn}\. Ask op"):
        secret(aws, arn).use_login(refuse)
    assert (tried, aws.reads) == ([PASSWORD], 2 if read_before else 1)


def test_postgres_uses_the_login_and_reads_a_rotated_one(
    aws: CountingSecretsManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = aws.put({"username": "replicator", "password": "old"})
    logins: list[tuple[str, str]] = []

    class Closed:
        autocommit = False

        def close(self) -> None:
            logins.append(("closed", ""))

    def sign_in(login: Login, _database: str) -> Any:  # noqa: ANN401 - a fake of psycopg2's connection
        logins.append((login.user, login.password))
        if login.password == "old":
            raise AccessRefused(f"PostgreSQL at {login.host}:5432 refuses user {login.user}.")
        return Closed()

    monkeypatch.setattr("resources.postgres.resource.open_connection", sign_in)
    postgres = Postgres(host="db", user="nobody", database="devdb", secret=secret(aws, arn))
    with pytest.raises(AccessRefused, match=arn), postgres.connect():
        pass
    aws.put({"password": "new"}, arn)
    with postgres.connect() as connection:
        assert connection.autocommit
    assert logins == [("replicator", "old"), ("replicator", "old"), ("nobody", "new"), ("closed", "")]
    assert (postgres.login().user, postgres.login().password) == ("nobody", "new")


def test_a_secret_without_a_password_is_reported_with_its_member_names(aws: CountingSecretsManager) -> None:
    arn = aws.put({"user": "a", "pass": PASSWORD})
    with pytest.raises(SecretUnusable, match=rf"{arn}: the member password is missing .*pass, user") as caught:
        secret(aws, arn).login()
    assert PASSWORD not in caught.value.user_message


def test_missing_refused_and_unreachable_secrets_are_reported(aws: CountingSecretsManager) -> None:
    with pytest.raises(SecretUnusable, match="Cannot read the secret other: it does not exist in us-east-1"):
        secret(aws, "other").login()
    with pytest.raises(AccessRefused, match=r"Cannot read the secret shop: .*InvalidSignatureException"):
        secret(aws, "shop", key="stolen").login()
    nowhere = DatabaseSecret(
        endpoint_url="http://127.0.0.1:9", access_key="key", secret_key="secret", attempts=1, secret_id="shop"
    )
    with pytest.raises(Unreachable, match="Cannot read the secret shop: "):
        nowhere.login()


def test_the_password_is_in_no_repr_and_no_log(aws: CountingSecretsManager, caplog: pytest.LogCaptureFixture) -> None:
    arn = aws.put({"username": "a", "password": PASSWORD})
    resource = secret(aws, arn)
    with caplog.at_level(logging.DEBUG):
        found = resource.login()
    assert found.password == PASSWORD
    assert "GetSecretValue" in caplog.text  # botocore has logged the request
    assert PASSWORD not in caplog.text
    assert PASSWORD not in f"{found!r} {resource!r} {Postgres(host='db', user='a', database='d', secret=resource)!r}"


def test_connectors_get_a_reference_to_the_secret(aws: CountingSecretsManager) -> None:
    assert secret(aws, "lake/db").connect_reference() == "${secretsmanager:lake/db:password}"
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake/db-AbCdEf"
    quoted = "arn%3Aaws%3Asecretsmanager%3Aus-east-1%3A123456789012%3Asecret%3Alake/db-AbCdEf"
    assert secret(aws, arn).connect_reference("username") == f"${{secretsmanager:{quoted}:username}}"
