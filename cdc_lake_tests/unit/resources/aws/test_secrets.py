"""Logins from Secrets Manager: read once, again when refused, and never written down."""

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


class Counted:
    """Secrets Manager; `reads` counts the reads of secrets."""

    def __init__(self) -> None:
        self.reads = 0
        self.url = ""
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Any:  # noqa: ANN401 - WSGI
        self.reads += environ.get("HTTP_X_AMZ_TARGET") == "secretsmanager.GetSecretValue"
        return self._moto(environ, start_response)

    def put(self, value: object, name: str | None = None) -> str:
        """Make a secret, or change the one of an ARN; its ARN."""
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        client = boto3.client("secretsmanager", endpoint_url=self.url, region_name=REGION, **keys)  # type: ignore[call-overload]
        text = value if isinstance(value, str) else json.dumps(value)
        if name is None:
            return str(client.create_secret(Name=f"shop-{uuid.uuid4()}", SecretString=text)["ARN"])
        return str(client.put_secret_value(SecretId=name, SecretString=text)["ARN"])


@pytest.fixture(scope="module")
def server() -> Iterator[Counted]:
    """It, listening."""
    counted = Counted()
    with serving({"secretsmanager": counted}) as url:
        counted.url = url
        yield counted


@pytest.fixture
def aws(server: Counted) -> Counted:
    """It, with nothing counted."""
    server.reads = 0
    return server


def secret(aws: Counted, arn: str, key: str = "key") -> DatabaseSecret:
    """The resource."""
    return DatabaseSecret(endpoint_url=aws.url, access_key=key, secret_key="secret", attempts=1, secret_id=arn)


def test_what_rds_writes_is_a_login(aws: Counted) -> None:
    arn = aws.put({"engine": "postgres", "username": "debezium", "password": PASSWORD, "port": 5432})
    assert secret(aws, arn).login() == SecretLogin("debezium", PASSWORD)


@pytest.mark.parametrize("text", [PASSWORD, "12345", '"quoted'])
def test_a_password_alone_is_one_too(aws: Counted, text: str) -> None:
    assert secret(aws, aws.put(text)).login() == SecretLogin(None, text)


def test_it_is_read_once_a_process(aws: Counted) -> None:
    arn = aws.put(PASSWORD)
    for _ in range(3):
        secret(aws, arn).login()
    assert secret(aws, arn).signed_in(lambda found: found.password) == PASSWORD
    assert aws.reads == 1


def test_after_a_rotation_it_is_read_again(aws: Counted) -> None:
    arn = aws.put({"username": "a", "password": "old"})
    secret(aws, arn).login()
    aws.put({"username": "b", "password": "new"}, arn)
    tried: list[str] = []

    def sign_in(found: SecretLogin) -> str | None:
        tried.append(found.password)
        if found.password == "old":
            raise AccessRefused("PostgreSQL refuses user a.")
        return found.username

    assert secret(aws, arn).signed_in(sign_in) == "b"
    assert secret(aws, arn).signed_in(sign_in) == "b"
    assert (tried, aws.reads) == (["old", "new", "new"], 2)


@pytest.mark.parametrize("read_before", [False, True])
def test_one_that_is_refused_as_it_is_now_is_named(aws: Counted, read_before: bool) -> None:
    arn = aws.put(PASSWORD)
    if read_before:
        secret(aws, arn).login()
    tried: list[str] = []

    def refuse(found: SecretLogin) -> None:
        tried.append(found.password)
        raise AccessRefused("PostgreSQL at db:5432 refuses user a.", "Ask operations.")

    with pytest.raises(AccessRefused, match=rf"refuses user a\. The login is that of the secret {arn}\. Ask op"):
        secret(aws, arn).signed_in(refuse)
    assert (tried, aws.reads) == ([PASSWORD], 2 if read_before else 1)


def test_postgres_signs_in_with_the_login(aws: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    arn = aws.put({"username": "replicator", "password": "old"})
    seen: list[tuple[str, str]] = []

    class Closed:
        autocommit = False

        def close(self) -> None:
            seen.append(("closed", ""))

    def sign_in(login: Login, _database: str) -> Any:  # noqa: ANN401 - stands in for psycopg2's connection
        seen.append((login.user, login.password))
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
    assert seen == [("replicator", "old"), ("replicator", "old"), ("nobody", "new"), ("closed", "")]
    assert (postgres.login().user, postgres.login().password) == ("nobody", "new")


def test_a_secret_without_a_password_tells_its_members_only(aws: Counted) -> None:
    arn = aws.put({"user": "a", "pass": PASSWORD})
    with pytest.raises(SecretUnusable, match=rf"{arn} has no password; it has pass, user") as caught:
        secret(aws, arn).login()
    assert PASSWORD not in caught.value.user_message


def test_what_is_not_there_or_not_allowed_is_named(aws: Counted) -> None:
    with pytest.raises(SecretUnusable, match="There is no secret other in us-east-1"):
        secret(aws, "other").login()
    with pytest.raises(AccessRefused, match=r"Reading the secret shop failed at .*InvalidSignatureException"):
        secret(aws, "shop", key="stolen").login()
    nowhere = DatabaseSecret(
        endpoint_url="http://127.0.0.1:9", access_key="key", secret_key="secret", attempts=1, secret_id="shop"
    )
    with pytest.raises(Unreachable, match="Reading the secret shop failed"):
        nowhere.login()


def test_a_password_is_in_no_repr_and_no_log(aws: Counted, caplog: pytest.LogCaptureFixture) -> None:
    arn = aws.put({"username": "a", "password": PASSWORD})
    one = secret(aws, arn)
    with caplog.at_level(logging.DEBUG):
        found = one.login()
    assert found.password == PASSWORD
    assert "GetSecretValue" in caplog.text  # botocore did write
    assert PASSWORD not in caplog.text
    assert PASSWORD not in f"{found!r} {one!r} {Postgres(host='db', user='a', database='d', secret=one)!r}"


def test_connectors_refer_to_it(aws: Counted) -> None:
    assert secret(aws, "lake/db").connect_reference() == "${secretsmanager:lake/db:password}"
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake/db-AbCdEf"
    quoted = "arn%3Aaws%3Asecretsmanager%3Aus-east-1%3A123456789012%3Asecret%3Alake/db-AbCdEf"
    assert secret(aws, arn).connect_reference("username") == f"${{secretsmanager:{quoted}:username}}"
