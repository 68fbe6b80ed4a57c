"""A stack of real engines: status, listeners, secrets, and data that survives `down` and `up`."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cdc_lake_tests.integration.infra.engine_probes import CONNECTOR, NAMES, EngineClients, secret_texts
from infra.errors import StackDown
from infra.local.stack.attach import load_endpoints, require_running
from infra.local.stack.process import find, is_alive
from infra.local.stack.stack import Stack


def test_the_status_of_every_component_is_reported(filled_stack: Stack, engine_clients: EngineClients) -> None:
    engine_clients.expect(rows=1)
    status = {component.name: component for component in filled_stack.status()}
    for name in NAMES:
        assert status[name].state == "running"
        assert status[name].version != "unknown"
        assert 10_000_000 < (status[name].rss_bytes or 0) < 2_000_000_000
    assert status["trino"].state == "stopped"
    require_running(NAMES, filled_stack.home.path)
    with pytest.raises(StackDown, match="trino is not running"):
        require_running([*NAMES, "trino"], filled_stack.home.path)


def test_components_listen_on_loopback_only(filled_stack: Stack) -> None:
    listening = 0
    for found in find(filled_stack.home.path):
        with suppress(psutil.NoSuchProcess):  # a short-lived process of PostgreSQL
            for connection in found.process.net_connections(kind="tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    listening += 1
                    assert connection.laddr.ip in {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, found.component
    assert listening >= len(NAMES)


def test_secrets_are_in_private_files_only(filled_stack: Stack, engine_clients: EngineClients) -> None:
    secrets = secret_texts(filled_stack.home.path)
    for found in find(filled_stack.home.path):
        with suppress(psutil.NoSuchProcess):
            assert not any(secret in " ".join(found.process.cmdline()) for secret in secrets)
    config = engine_clients.connect("GET", f"/connectors/{CONNECTOR}").text
    tasks = engine_clients.connect("GET", f"/connectors/{CONNECTOR}/tasks").text
    assert not any(secret in config + tasks for secret in secrets)
    for path in filled_stack.home.path.rglob("*"):
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
            assert path.suffix != ".log"


def test_postgres_has_logical_replication_and_scram_passwords(engine_clients: EngineClients) -> None:
    connection = engine_clients.postgres()
    with connection.cursor() as cursor:
        cursor.execute("SHOW wal_level")
        assert cursor.fetchone() == ("logical",)
        cursor.execute("SELECT rolpassword LIKE 'SCRAM-SHA-256%' FROM pg_authid WHERE rolname = current_user")
        assert cursor.fetchone() == (True,)
    connection.close()


def test_down_ends_all_processes_and_up_keeps_the_data(filled_stack: Stack, engine_clients: EngineClients) -> None:
    processes = [found.process for found in find(filled_stack.home.path)]
    filled_stack.down()
    assert find(filled_stack.home.path) == []
    assert not any(is_alive(process) for process in processes)
    filled_stack.up(NAMES)
    assert EngineClients(load_endpoints(filled_stack.home.path)).at == engine_clients.at
    engine_clients.check_one_more_row()
    filled_stack.home.state_file.write_text('{"ports": {"postg')
    filled_stack.down()
    assert find(filled_stack.home.path) == []


def test_log_files_are_private(filled_stack: Stack) -> None:
    logs = list(Path(filled_stack.home.path, "logs").glob("*.log"))
    assert {log.stem for log in logs} == set(NAMES)
    assert all(stat.S_IMODE(log.stat().st_mode) == 0o600 for log in logs)
