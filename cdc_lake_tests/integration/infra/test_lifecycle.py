"""The real engines in one stack: up, down, up; data and secrets looked after throughout."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cdc_lake_tests.integration.infra.engine_probes import CONNECTOR, NAMES, Engines, secret_texts
from infra.local.errors import StackDown
from infra.local.stack.attach import load_endpoints, require_running
from infra.local.stack.process import find, is_alive
from infra.local.stack.stack import Stack


def test_status(stack: Stack, engines: Engines) -> None:
    engines.expect(rows=1)
    status = {component.name: component for component in stack.status()}
    for name in NAMES:
        assert status[name].state == "running"
        assert status[name].version != "unknown"
        assert 10_000_000 < (status[name].rss_bytes or 0) < 2_000_000_000
    assert status["trino"].state == "stopped"
    require_running(NAMES, stack.home.path)
    with pytest.raises(StackDown, match="trino is not running"):
        require_running([*NAMES, "trino"], stack.home.path)


def test_loopback_only(stack: Stack) -> None:
    listening = 0
    for found in find(stack.home.path):
        with suppress(psutil.NoSuchProcess):  # a worker of PostgreSQL's that had little to do
            for connection in found.process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    listening += 1
                    assert connection.laddr.ip in {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, found.component
    assert listening >= len(NAMES)


def test_secrets_stay_secret(stack: Stack, engines: Engines) -> None:
    secrets = secret_texts(stack.home.path)
    for found in find(stack.home.path):
        with suppress(psutil.NoSuchProcess):
            assert not any(secret in " ".join(found.process.cmdline()) for secret in secrets)
    config = engines.connect("GET", f"/connectors/{CONNECTOR}").text
    tasks = engines.connect("GET", f"/connectors/{CONNECTOR}/tasks").text
    assert not any(secret in config + tasks for secret in secrets)
    for path in stack.home.path.rglob("*"):
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
            assert path.suffix != ".log"


def test_postgres_is_made_for_logical_replication(engines: Engines) -> None:
    connection = engines.postgres()
    with connection.cursor() as cursor:
        cursor.execute("SHOW wal_level")
        assert cursor.fetchone() == ("logical",)
        cursor.execute("SELECT rolpassword LIKE 'SCRAM-SHA-256%' FROM pg_authid WHERE rolname = current_user")
        assert cursor.fetchone() == (True,)
    connection.close()


def test_down_leaves_nothing_and_up_finds_everything(stack: Stack, engines: Engines) -> None:
    processes = [found.process for found in find(stack.home.path)]
    stack.down()
    assert find(stack.home.path) == []
    assert not any(is_alive(process) for process in processes)
    stack.up(NAMES)
    assert Engines(load_endpoints(stack.home.path)).at == engines.at
    engines.check_one_more_row()
    stack.home.state_file.write_text('{"ports": {"postg')
    stack.down()
    assert find(stack.home.path) == []


def test_logs_are_private(stack: Stack) -> None:
    logs = list(Path(stack.home.path, "logs").glob("*.log"))
    assert {log.stem for log in logs} == set(NAMES)
    assert all(stat.S_IMODE(log.stat().st_mode) == 0o600 for log in logs)
