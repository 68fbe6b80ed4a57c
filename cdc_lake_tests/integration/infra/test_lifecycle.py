"""The real engines in one stack: up, killed, up, down, up; data and secrets looked after throughout."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from cdc_lake_tests.integration.infra.probes import CONNECTOR, Engines, secret_texts
from cdc_lake_tests.stack import running_stack, scratch_home
from infra.local.attach import load_endpoints, require_running
from infra.local.errors import StackDown
from infra.local.process import find, is_alive
from infra.local.stack import Stack

NAMES = ("postgres", "kafka", "connect", "s3")
ROWS = iter(range(2, 1000))


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """PostgreSQL, Kafka, Connect and S3, with something in each of them."""
    with scratch_home() as home, running_stack(home, NAMES) as started:
        Engines(load_endpoints(home)).write()
        yield started


@pytest.fixture(scope="module")
def engines(stack: Stack) -> Engines:
    """Clients of that stack."""
    return Engines(load_endpoints(stack.home.path))


def check_one_more_row(engines: Engines) -> None:
    """All that was written is there, and a new row goes through."""
    row = next(ROWS)
    engines.insert(row)
    engines.expect(rows=row)


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
    config = httpx.get(f"{engines.at.connect_url}/connectors/{CONNECTOR}").text
    tasks = httpx.get(f"{engines.at.connect_url}/connectors/{CONNECTOR}/tasks").text
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


@pytest.mark.parametrize("name", NAMES)
def test_kill_9_and_up(stack: Stack, engines: Engines, name: str) -> None:
    before = {component.name: component.pid for component in stack.status()}
    victim = psutil.Process(before[name])
    victim.kill()
    assert psutil.wait_procs([victim], timeout=10)[1] == []
    assert next(c.state for c in stack.status() if c.name == name) == "dead"
    stack.up(NAMES)
    after = {component.name: component.pid for component in stack.status()}
    assert {other for other in NAMES if before[other] != after[other]} == {name}
    check_one_more_row(engines)


def test_kill_9_of_everything_at_once(stack: Stack, engines: Engines) -> None:
    for found in find(stack.home.path):
        found.process.kill()
    stack.up(NAMES)
    check_one_more_row(engines)


@pytest.mark.parametrize("seconds", [0.7, 2.5, 5.0])
def test_kill_9_of_up_itself(stack: Stack, engines: Engines, seconds: float) -> None:
    stack.down()
    command = [sys.executable, "-m", "cdc_lake.cli.app", "up", "--home", str(stack.home.path)]
    for name in NAMES:
        command += ["--only", name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        try:
            first.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            first.kill()
    stack.up(NAMES)
    assert sorted(f.component for f in find(stack.home.path) if f.main) == sorted(NAMES)
    check_one_more_row(engines)


def test_down_leaves_nothing_and_up_finds_everything(stack: Stack, engines: Engines) -> None:
    processes = [found.process for found in find(stack.home.path)]
    stack.down()
    assert find(stack.home.path) == []
    assert not any(is_alive(process) for process in processes)
    stack.up(NAMES)
    assert Engines(load_endpoints(stack.home.path)).at == engines.at
    check_one_more_row(engines)
    stack.home.state_file.write_text('{"ports": {"postg')
    stack.down()
    assert find(stack.home.path) == []


def test_logs_are_private(stack: Stack) -> None:
    logs = list(Path(stack.home.path, "logs").glob("*.log"))
    assert {log.stem for log in logs} == set(NAMES)
    assert all(stat.S_IMODE(log.stat().st_mode) == 0o600 for log in logs)
