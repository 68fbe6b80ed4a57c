"""A pid file that a killed server left: removed unless a server has that pid."""

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


def test_a_server_that_runs_and_one_that_was_killed(server: Path, tmp_path: Path) -> None:
    noted = tmp_path / "postmaster.pid"
    with subprocess.Popen([str(server), "60"]) as running:
        noted.write_text(f"{running.pid}\n/data\n")
        _drop_stale_pid(noted)
        assert noted.exists()
        running.kill()
        # Not waited for: a zombie, as a killed server is until its parent asks for it.
        until(
            psutil.Process(running.pid).status,
            lambda status: status == psutil.STATUS_ZOMBIE,
            seconds=10,
            what="the killed server to be a zombie",
            pause_seconds=0.02,
        )
        _drop_stale_pid(noted)
        assert not noted.exists()


def test_a_pid_that_nobody_has_and_no_file_at_all(tmp_path: Path) -> None:
    noted = tmp_path / "postmaster.pid"
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    noted.write_text(f"{ended.pid}\n")
    _drop_stale_pid(noted)
    assert not noted.exists()
    _drop_stale_pid(noted)
