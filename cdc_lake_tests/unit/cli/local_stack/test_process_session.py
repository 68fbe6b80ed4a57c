"""A program in its own session: order of the interrupts, and no remaining processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

HELPER = """
import os, pathlib, signal, sys, time
if "own-group" in sys.argv: os.setpgid(0, 0)
log = pathlib.Path(sys.argv[1])
def note(*_):
    with log.open("a") as file: file.write("helper interrupted\\n")
    sys.exit()
signal.signal(signal.SIGINT, signal.SIG_IGN if "ignore-sigint" in sys.argv else note)
with log.open("a") as file: file.write("helper started\\n")
time.sleep(600)
"""
"""Like a code server of `dagster dev`: the program needs it until the program ends, and does not end it."""
PROGRAM = f"""
import pathlib, signal, subprocess, sys, time
log = pathlib.Path(sys.argv[1])
helper = subprocess.Popen([sys.executable, "-c", {HELPER!r}, *sys.argv[1:]])
def end(*_):
    with log.open("a") as file: file.write("program interrupted\\n")
    try: helper.wait(1)  # long enough for a signal that is sent to both
    except subprocess.TimeoutExpired:
        with log.open("a") as file: file.write("helper runs\\n")
    if "hang" in sys.argv: time.sleep(600)
    sys.exit(3)
signal.signal(signal.SIGINT, end)
if "fail" in sys.argv:
    while "started" not in (log.read_text() if log.exists() else ""): time.sleep(0.02)
    sys.exit(4)
time.sleep(600)
"""
COMMAND = """
import signal, sys
from cdc_lake.cli.local_stack import process_session
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup sets it to be ignored
sys.exit(process_session.run(sys.argv[2:], remaining_seconds=float(sys.argv[1])))
"""


class Command:
    """A command that runs PROGRAM in a session; `log` is the file to which its processes write."""

    def __init__(self, folder: Path, remaining_seconds: float, options: Sequence[str], sigint_ignored: bool) -> None:
        self.log = folder / "log"
        argv = [sys.executable, "-c", COMMAND, str(remaining_seconds)]
        shell = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"] if sigint_ignored else []
        self.process = subprocess.Popen(
            [*shell, *argv, sys.executable, "-c", PROGRAM, str(self.log), *options],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, line: str) -> None:
        """Wait until a process has written this line."""
        Retrying(retry=retry_if_result(lambda found: not found), stop=stop_after_delay(60), wait=wait_fixed(0.02))(
            lambda: line in self.lines()
        )

    def lines(self) -> list[str]:
        """Return the lines written so far."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def remaining(self) -> list[psutil.Process]:
        """Return the processes of the program that still run."""
        matching = [each for each in psutil.process_iter(["cmdline"]) if str(self.log) in (each.info["cmdline"] or [])]
        return [each for each in matching if each.pid != self.process.pid]


@pytest.fixture
def command(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Command]:
    """The command with a running program and helper."""
    command = Command(
        tmp_path, **{"remaining_seconds": 60, "options": (), "sigint_ignored": False, **getattr(request, "param", {})}
    )
    command.wait_for("helper started")
    yield command
    command.process.kill()
    for process in command.remaining():
        process.kill()
    command.process.communicate()


def test_an_interrupt_is_sent_to_the_program_first_and_then_to_its_remaining_processes(command: Command) -> None:
    os.killpg(command.process.pid, signal.SIGINT)  # like Ctrl-C
    assert command.process.wait(60) == 0
    assert command.lines() == ["helper started", "program interrupted", "helper runs", "helper interrupted"]
    assert command.remaining() == []


@pytest.mark.parametrize("command", [{"sigint_ignored": True}], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_end_a_command_that_ignores_sigint(command: Command, number: signal.Signals) -> None:
    """A script starts background commands with SIGINT ignored, which programs inherit."""
    command.process.send_signal(number)
    assert command.process.wait(60) == 0
    assert command.lines()[-1] == "helper interrupted"


@pytest.mark.parametrize("command", [{"options": ["ignore-sigint"], "remaining_seconds": 0.2}], indirect=True)
def test_a_process_that_does_not_end_is_killed_and_named(command: Command) -> None:
    [helper] = [each for each in command.remaining() if each.ppid() != command.process.pid]
    os.killpg(command.process.pid, signal.SIGINT)
    assert command.process.wait(60) == 0
    assert command.remaining() == []
    assert command.process.stderr is not None
    assert f"Killing process {helper.pid}: " in command.process.stderr.read()


@pytest.mark.parametrize("command", [{"options": ["own-group"], "remaining_seconds": 0.2}], indirect=True)
def test_a_process_of_another_group_gets_no_interrupt(command: Command) -> None:
    """Spark's Python workers end with their JVM."""
    os.killpg(command.process.pid, signal.SIGINT)
    assert command.process.wait(60) == 0
    assert "helper interrupted" not in command.lines()
    assert command.remaining() == []


@pytest.mark.parametrize("command", [{"options": ["hang"]}], indirect=True)
def test_a_second_interrupt_kills_at_once(command: Command) -> None:
    os.killpg(command.process.pid, signal.SIGINT)
    command.wait_for("program interrupted")
    os.killpg(command.process.pid, signal.SIGINT)
    assert command.process.wait(60) == 0
    assert command.remaining() == []


@pytest.mark.parametrize("command", [{"options": ["fail"]}], indirect=True)
def test_the_programs_exit_code_is_returned_and_no_process_remains(command: Command) -> None:
    assert command.process.wait(60) == 4
    assert command.lines()[-1] == "helper interrupted"
    assert command.remaining() == []
