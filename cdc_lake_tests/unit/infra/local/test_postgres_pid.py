"""A stale pid file of PostgreSQL is removed unless a server runs with that pid."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psutil
import pytest

from infra.local.components.postgres import _drop_stale_pid
from resources.waiting import until


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A program called postgres that runs until it is killed."""
    program = tmp_path / "postgres"
    shutil.copy2(shutil.which("sleep") or "/bin/sleep", program)
    return program


def test_a_pid_file_is_kept_while_its_server_runs_and_removed_after_a_kill(server: Path, tmp_path: Path) -> None:
    pid_file = tmp_path / "postmaster.pid"
    with subprocess.Popen([str(server), "60"]) as running:
        pid_file.write_text(f"{running.pid}\n/data\n")
        _drop_stale_pid(pid_file)
        assert pid_file.exists()
        running.kill()
        # Without wait() it stays a zombie, like a killed server whose parent has not collected it.
        until(
            psutil.Process(running.pid).status,
            lambda status: status == psutil.STATUS_ZOMBIE,
            seconds=10,
            what="the killed server to be a zombie",
            pause_seconds=0.02,
        )
        _drop_stale_pid(pid_file)
        assert not pid_file.exists()


def test_a_pid_file_of_an_ended_process_is_removed(tmp_path: Path) -> None:
    pid_file = tmp_path / "postmaster.pid"
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    pid_file.write_text(f"{ended.pid}\n")
    _drop_stale_pid(pid_file)
    assert not pid_file.exists()
    _drop_stale_pid(pid_file)
