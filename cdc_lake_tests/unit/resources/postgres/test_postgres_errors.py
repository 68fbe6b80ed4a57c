"""Connection errors: their messages, without a password."""

import socket
import time

import dagster as dg
import pytest

from resources.errors import Unreachable
from resources.postgres.resource import Postgres

HINT = "Run `cdc-lake up`."


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def postgres(password: str = "s3cret") -> Postgres:
    return Postgres(host="127.0.0.1", port=unused_port(), user="me", password=password, database="devdb", hint=HINT)


def test_an_unreachable_server_is_reported_with_the_hint() -> None:
    resource = postgres()
    began = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        resource.current_lsn()
    assert time.monotonic() - began < 5
    assert caught.value.user_message.endswith(HINT)
    assert f"127.0.0.1:{resource.port}" in caught.value.user_message
    assert "s3cret" not in str(caught.value)


def test_the_password_is_not_in_the_repr() -> None:
    resource = postgres()
    assert "s3cret" not in repr(resource)
    assert "s3cret" not in str(resource)


def test_a_password_from_the_environment_is_resolved_outside_of_dagster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PASSWORD", "from there")
    assert postgres(password=dg.EnvVar("A_PASSWORD"))._login().password == "from there"
