"""Run a program in a separate process session, and end the session when this process gets a signal.

Ctrl-C in a terminal is sent to every process of the foreground group, but only `dagster dev` itself must get it: if a
code server ends before the web server and the daemon, Dagster restarts it, waits for it and leaves it running.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

END_SECONDS = 150.0
"""Time for `dagster dev` to end: it waits 60 s for its web server, then 60 s for its daemon, before it kills them."""
REMAINING_SECONDS = 30.0
"""Time for the runs to record that they were interrupted."""
_POLL_SECONDS = 0.2
_GONE = (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied)


def run(
    command: Sequence[str | Path], end_seconds: float = END_SECONDS, remaining_seconds: float = REMAINING_SECONDS
) -> int:
    """Run the command until it ends, or this process gets SIGINT, SIGTERM or SIGHUP.

    On a signal, SIGINT is sent to the program, then to the other processes of its process group, as a terminal does.
    Spark's Python workers have a group of their own: a run that ends still needs them. Processes that do not end
    within the limits (seconds), or when a second signal arrives, get SIGKILL. Returns 0 after a signal, else the
    program's exit code: 128 + n if signal n ended it.
    """
    stop_requested, kill_requested = threading.Event(), threading.Event()
    with _on_signals(stop_requested, kill_requested):
        program = subprocess.Popen(command, start_new_session=True)
        while program.poll() is None and not stop_requested.is_set():
            stop_requested.wait(_POLL_SECONDS)
        if program.poll() is None:
            program.send_signal(signal.SIGINT)
            _wait([psutil.Process(program.pid)], end_seconds, kill_requested)
        rest = _members(program.pid)
        for process in rest:
            if _group(process) == program.pid:
                _signal(process, signal.SIGINT)
        for process in _wait(rest, remaining_seconds, kill_requested):
            print(f"Killing process {process.pid}: it did not end after an interrupt.", file=sys.stderr)
        while left := _members(program.pid):  # also processes that were started in the meantime
            for process in left:
                _signal(process, signal.SIGKILL)
            psutil.wait_procs(left, timeout=10)
        code = program.wait()
    return 0 if stop_requested.is_set() else code if code >= 0 else 128 - code


@contextmanager
def _on_signals(stop_requested: threading.Event, kill_requested: threading.Event) -> Iterator[None]:
    """Set `stop_requested` on the first signal and `kill_requested` on the second, during the block."""

    def handle_signal(_number: int, _frame: object) -> None:
        (kill_requested if stop_requested.is_set() else stop_requested).set()

    # A shell starts background programs with SIGINT ignored, and a child process inherits that. A signal with a handler
    # in this process has the default action in the child.
    before = {number: signal.signal(number, handle_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores SIGHUP: do not handle it
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, handle_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(processes: Sequence[psutil.Process], seconds: float, kill_requested: threading.Event) -> list[psutil.Process]:
    """Wait until the processes end, `seconds` pass or `kill_requested` is set; return those that still run."""
    left, waited = list(processes), 0.0
    while left and waited < seconds and not kill_requested.is_set():
        _, left = psutil.wait_procs(left, timeout=_POLL_SECONDS)
        waited += _POLL_SECONDS
    return left


def _members(session: int) -> list[psutil.Process]:
    """Return the live processes of a session, given the id of its first process."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError, *_GONE):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _group(process: psutil.Process) -> int | None:
    """Return the id of a process's group; None if the process has ended."""
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return None


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(*_GONE):
        process.send_signal(number)
