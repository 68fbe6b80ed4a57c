"""Two stacks on one machine, and ports that other processes use."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from cdc_lake_tests.integration.infra.engine_probes import EngineClients, secret_texts
from infra.errors import PortTaken, StackError
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import BUCKET
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome

NAMES = ("postgres", "s3")


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a new state folder."""
    with scratch_home() as folder:
        yield folder


def test_two_stacks_are_independent() -> None:
    with ExitStack() as both:
        homes = [both.enter_context(scratch_home()) for _ in range(2)]
        stacks = [both.enter_context(running_stack(home, NAMES)) for home in homes]
        first, second = (EngineClients(load_endpoints(home)) for home in homes)
        ports = [component.port for stack in stacks for component in stack.status()]
        assert len(set(ports)) == len(ports)
        assert not set(secret_texts(homes[0])) & set(secret_texts(homes[1]))
        first.s3().put_object(Bucket=BUCKET, Key="mine", Body=b"1")
        assert second.s3().list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
        stacks[0].down()
        with closing(second.postgres()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)


def test_up_fails_before_it_starts_anything_if_a_fixed_port_is_taken(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("CDC_LAKE_PORT_S3", str(port))
        stack = Stack(StackHome(home))
        with pytest.raises(PortTaken, match=rf"Cannot start s3: port {port} .*pid {os.getpid()}.*CDC_LAKE_PORT_S3"):
            stack.up(NAMES)
    assert {component.state for component in stack.status()} == {"stopped"}
    with running_stack(home, ["s3"]) as started:
        assert next(c.port for c in started.status() if c.name == "s3") == port


def test_a_saved_port_that_is_taken_is_replaced(home: Path) -> None:
    with running_stack(home, ["postgres"]) as stack:
        port = next(c.port for c in stack.status() if c.name == "postgres")
        assert port is not None
        stack.down()
        with socket.create_server(("127.0.0.1", port)):
            stack.up(["postgres"])
            assert load_endpoints(home).postgres_port != port
        with closing(EngineClients(load_endpoints(home)).postgres()):
            pass


@pytest.mark.skipif(os.getuid() != 0, reason="only root runs PostgreSQL as another user")
def test_a_state_folder_that_postgres_cannot_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    stack = Stack(StackHome(tmp_path / "home"))
    with pytest.raises(StackError, match=r"cannot enter .*chmod o\+x"):
        stack.up(["postgres"])
    stack.down()
