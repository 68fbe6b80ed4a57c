"""Processes of a stack: ownership, reused pids, and ending whole process groups."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from infra.errors import StackError
from infra.local.stack.component import Launch
from infra.local.stack.process import end, find, is_alive, record, recorded, spawn
from infra.local.stack.stack_state import ProcessRecord
from resources.waiting import until

SLEEP = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
)
PARENT = (
    sys.executable,
    "-c",
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print('up', flush=True); time.sleep(600)",
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A state folder; its remaining processes are killed at the end."""
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    for found in find(folder):
        with suppress(psutil.NoSuchProcess):
            found.process.kill()


def start(home: Path, argv: tuple[str, ...], component: str = "one") -> psutil.Popen:
    """Start a process and wait until it has printed `up`."""
    log = home / "log"
    process = spawn(Launch(argv), component, home, log)
    until(log.read_text, lambda text: "up" in text, seconds=4, what=f"{component} to come up", pause_seconds=0.02)
    return process


def test_a_process_is_found_by_its_home_without_a_record(home: Path, tmp_path: Path) -> None:
    process = start(home, SLEEP)
    assert [(f.component, f.process.pid, f.main) for f in find(home)] == [("one", process.pid, True)]
    assert find(home, "two") == []
    assert find(tmp_path / "other") == []


def test_a_forked_child_is_not_the_main_process(home: Path) -> None:
    process = start(home, PARENT)
    (child,) = process.children()
    assert [(f.process.pid, f.main) for f in find(home)] == [(process.pid, True), (child.pid, False)]


def test_a_reused_pid_is_not_ours(home: Path) -> None:
    process = start(home, SLEEP)
    process_record = record(process)
    assert recorded(process_record) == process
    assert recorded(ProcessRecord(pid=process_record.pid, created=process_record.created - 60)) is None
    assert recorded(None) is None


def test_a_zombie_is_not_alive(home: Path) -> None:
    process = start(home, SLEEP)
    process_record = record(process)
    process.send_signal(signal.SIGKILL)
    end([psutil.Process(process.pid)], signal.SIGTERM, 5)
    assert not is_alive(process)
    assert recorded(process_record) is None


def test_children_end_with_their_process(home: Path) -> None:
    process = start(home, PARENT)
    children = process.children()
    assert len(children) == 1
    end([process], signal.SIGTERM, 5)
    assert not is_alive(process)
    assert not any(is_alive(child) for child in children)


def test_a_process_that_ignores_the_signal_is_killed(home: Path) -> None:
    process = start(home, STUBBORN)
    end([process], signal.SIGTERM, 0.3)
    assert not is_alive(process)


def test_the_callers_environment_is_not_inherited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-user")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    process = start(home, SLEEP)
    environment = process.environ()
    assert "AWS_SECRET_ACCESS_KEY" not in environment
    assert "JAVA_TOOL_OPTIONS" not in environment
    assert "PATH" in environment


def test_a_missing_program_is_reported(home: Path) -> None:
    with pytest.raises(StackError, match=r"Cannot start .*: /no/such: "):
        spawn(Launch(("/no/such",)), "one", home, home / "log")


def test_the_log_is_private_and_rotated_when_it_is_large(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.local.stack.process.LOG_LIMIT", 10)
    log = home / "one.log"
    log.write_text("x" * 20)
    process = spawn(Launch((sys.executable, "-c", "print('up')")), "one", home, log)
    process.wait(timeout=10)
    assert log.read_text() == "up\n"
    assert (home / "one.log.1").read_text() == "x" * 20
    assert log.stat().st_mode & 0o077 == 0


def test_a_process_ends_on_sigterm_even_if_our_parent_ignores_it(home: Path) -> None:
    ours = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        process = start(home, SLEEP)
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM
