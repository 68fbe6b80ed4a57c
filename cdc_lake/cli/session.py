"""Run a program in a process session of its own, and end the session when this process is asked to end.

Ctrl-C in a terminal reaches every process of the foreground group. `dagster dev` must get it alone: a code server that
ends before the web server and the daemon do is started again, and Dagster then waits for it and leaves it running.
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
"""Dagster waits 60 s for its web server, then 60 s for its daemon, before it kills them."""
REST_SECONDS = 30.0
"""What is left then are runs, which record that they were interrupted."""
_POLL_SECONDS = 0.2
_GONE = (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied)


def run(command: Sequence[str | Path], end_seconds: float = END_SECONDS, rest_seconds: float = REST_SECONDS) -> int:
    """Run the command until it ends or this process gets SIGINT, SIGTERM or SIGHUP; return the exit code.

    Then SIGINT goes to the program alone, afterwards to what it left in its session, and SIGKILL to what does not end
    within the bounds (seconds), or at once on a second signal. The code is 0 where a signal asked for the end.
    """
    asked, hurry = threading.Event(), threading.Event()
    with _on_signals(asked, hurry):
        program = subprocess.Popen(command, start_new_session=True)
        while program.poll() is None and not asked.is_set():
            asked.wait(_POLL_SECONDS)
        if program.poll() is None:
            program.send_signal(signal.SIGINT)
            _wait([psutil.Process(program.pid)], end_seconds, hurry)
        rest = _members(program.pid)
        for process in rest:
            _signal(process, signal.SIGINT)
        for process in _wait(rest, rest_seconds, hurry):
            print(f"Killed pid {process.pid}: it did not end when it was interrupted.", file=sys.stderr)
        while left := _members(program.pid):  # those that were started meanwhile, too
            for process in left:
                _signal(process, signal.SIGKILL)
            psutil.wait_procs(left, timeout=10)
        code = program.wait()
    return 0 if asked.is_set() else code if code >= 0 else 128 - code


@contextmanager
def _on_signals(asked: threading.Event, hurry: threading.Event) -> Iterator[None]:
    """Set `asked` on the first signal and `hurry` on the second, during the block."""

    def note(_number: int, _frame: object) -> None:
        (hurry if asked.is_set() else asked).set()

    # A script's `&` lets its programs ignore SIGINT; one that is caught here has its default action in the program.
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(processes: Sequence[psutil.Process], seconds: float, hurry: threading.Event) -> list[psutil.Process]:
    """Return those that still run after `seconds`, or as soon as there is a hurry."""
    left, waited = list(processes), 0.0
    while left and waited < seconds and not hurry.is_set():
        _, left = psutil.wait_procs(left, timeout=_POLL_SECONDS)
        waited += _POLL_SECONDS
    return left


def _members(session: int) -> list[psutil.Process]:
    """Return the live processes of a session, by its first process's id."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError, *_GONE):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(*_GONE):
        process.send_signal(number)
