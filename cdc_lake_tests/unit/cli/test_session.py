"""A program in a session of its own: who is asked to end, in which order, and that nothing of it is left."""

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
import pathlib, signal, sys, time
heard = pathlib.Path(sys.argv[1])
def note(*_):
    with heard.open("a") as file: file.write("helper interrupted\\n")
    sys.exit()
signal.signal(signal.SIGINT, signal.SIG_IGN if "deaf" in sys.argv else note)
with heard.open("a") as file: file.write("helper started\\n")
time.sleep(600)
"""
"""What `dagster dev` has in its code servers: a process that it needs until its own end, and leaves behind."""
PROGRAM = f"""
import pathlib, signal, subprocess, sys, time
heard = pathlib.Path(sys.argv[1])
helper = subprocess.Popen([sys.executable, "-c", {HELPER!r}, *sys.argv[1:]])
def end(*_):
    with heard.open("a") as file: file.write("program interrupted\\n")
    try: helper.wait(1)  # long enough for a signal that goes to both
    except subprocess.TimeoutExpired:
        with heard.open("a") as file: file.write("helper runs\\n")
    if "hang" in sys.argv: time.sleep(600)
    sys.exit(3)
signal.signal(signal.SIGINT, end)
if "fail" in sys.argv:
    while "started" not in (heard.read_text() if heard.exists() else ""): time.sleep(0.02)
    sys.exit(4)
time.sleep(600)
"""
COMMAND = """
import signal, sys
from cdc_lake.cli import session
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where the tests run under nohup
sys.exit(session.run(sys.argv[2:], rest_seconds=float(sys.argv[1])))
"""


class Command:
    """A command that runs PROGRAM in a session; `heard` is what its processes wrote."""

    def __init__(self, folder: Path, rest_seconds: float, ways: Sequence[str], ignores: bool) -> None:
        self.heard = folder / "heard"
        ours = [sys.executable, "-c", COMMAND, str(rest_seconds)]
        shell = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"] if ignores else []
        self.process = subprocess.Popen(
            [*shell, *ours, sys.executable, "-c", PROGRAM, str(self.heard), *ways],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, line: str) -> None:
        """Return when a process has written the line."""
        Retrying(retry=retry_if_result(lambda there: not there), stop=stop_after_delay(60), wait=wait_fixed(0.02))(
            lambda: line in self.lines()
        )

    def lines(self) -> list[str]:
        """What was written so far."""
        return self.heard.read_text().splitlines() if self.heard.exists() else []

    def left(self) -> list[psutil.Process]:
        """The processes of the program that still run."""
        named = [each for each in psutil.process_iter(["cmdline"]) if str(self.heard) in (each.info["cmdline"] or [])]
        return [each for each in named if each.pid != self.process.pid]


@pytest.fixture
def command(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Command]:
    """The command, whose program and helper run."""
    made = Command(tmp_path, **{"rest_seconds": 60, "ways": (), "ignores": False, **getattr(request, "param", {})})
    made.wait_for("helper started")
    yield made
    made.process.kill()
    for process in made.left():
        process.kill()
    made.process.communicate()


def test_an_interrupt_reaches_the_program_alone_and_then_what_it_left(command: Command) -> None:
    os.killpg(command.process.pid, signal.SIGINT)  # as Ctrl-C does
    assert command.process.wait(60) == 0
    assert command.lines() == ["helper started", "program interrupted", "helper runs", "helper interrupted"]
    assert command.left() == []


@pytest.mark.parametrize("command", [{"ignores": True}], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_from_a_script_in_the_background(command: Command, number: signal.Signals) -> None:
    """Such a command is started with SIGINT ignored, which its program would inherit."""
    command.process.send_signal(number)
    assert command.process.wait(60) == 0
    assert command.lines()[-1] == "helper interrupted"


@pytest.mark.parametrize("command", [{"ways": ["deaf"], "rest_seconds": 0.2}], indirect=True)
def test_what_does_not_end_is_killed_and_named(command: Command) -> None:
    [helper] = [each for each in command.left() if each.ppid() != command.process.pid]
    os.killpg(command.process.pid, signal.SIGINT)
    assert command.process.wait(60) == 0
    assert command.left() == []
    assert command.process.stderr is not None
    assert f"Killed pid {helper.pid}: " in command.process.stderr.read()


@pytest.mark.parametrize("command", [{"ways": ["hang"]}], indirect=True)
def test_a_second_interrupt_does_not_wait(command: Command) -> None:
    os.killpg(command.process.pid, signal.SIGINT)
    command.wait_for("program interrupted")
    os.killpg(command.process.pid, signal.SIGINT)
    assert command.process.wait(60) == 0
    assert command.left() == []


@pytest.mark.parametrize("command", [{"ways": ["fail"]}], indirect=True)
def test_a_program_that_ends_leaves_nothing_and_its_code(command: Command) -> None:
    assert command.process.wait(60) == 4
    assert command.lines()[-1] == "helper interrupted"
    assert command.left() == []
