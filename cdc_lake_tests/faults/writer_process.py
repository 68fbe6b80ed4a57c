"""A process that does a pipeline's work when it is told to, and that a fault may end or stop: the tests' writer."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import psutil
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

SECONDS = 240.0

_processes = multiprocessing.get_context("forkserver")
# Dagster and the definitions: seconds that each writer would take again.
_processes.set_forkserver_preload(["cdc_lake_tests.faults.writer_actions"])


class Died(Exception):  # noqa: N818 - what happened to the writer, not an error of the test
    """The writer ended without an answer; `code` as Popen.returncode has it."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"the writer ended with {code}")
        self.code = code


class Failed(Exception):  # noqa: N818 - what the writer said, not an error of the test
    """The writer answered with an exception: `kind` is its class's name, the text its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Writer:
    """One process on one stack; ended with the block, if it has not ended before."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._line, theirs = _processes.Pipe()
        self._process = _processes.Process(target=_serve, args=(theirs, dict(environment), log), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()
        if self._process.is_alive() and self.stopped:
            self.send(signal.SIGCONT)
        self._process.join(30)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    @property
    def pid(self) -> int:
        """The process."""
        pid = self._process.pid
        assert pid is not None
        return pid

    @property
    def stopped(self) -> bool:
        """Whether the process stands still by SIGSTOP."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        return False

    def do(self, work: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401 - what the work returns
        """Do this and return what it returns. Raises Failed with what it raised, Died where the process ended."""
        self.begin(work, *args)
        return self.end()

    def begin(self, work: Callable[..., Any], *args: object) -> None:
        """Begin with this; `end` is what became of it."""
        self._line.send((work, args))

    def end(self, seconds: float = SECONDS) -> Any:  # noqa: ANN401 - what the work returns
        """Wait for what was begun. Raises Failed, Died, TimeoutError."""
        ready = wait([self._line, self._process.sentinel], seconds)
        if not ready:
            raise TimeoutError(f"the writer has not answered within {seconds:.0f} s")
        try:
            kind, answer = self._line.recv()
        except (EOFError, ConnectionError):
            self._process.join(30)
            raise Died(self._process.exitcode) from None
        if kind:
            raise Failed(kind, answer)
        return answer

    def wait_stopped(self, seconds: float = SECONDS) -> None:
        """Wait until the process stands still."""
        Retrying(retry=retry_if_result(lambda there: not there), stop=stop_after_delay(seconds), wait=wait_fixed(0.1))(
            lambda: self.stopped
        )

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


def answer_signals() -> None:
    """Undo that whoever started the tests ignores signals (nohup, some CI runners): children would inherit that, and
    Dagster waits half a minute for each of its helpers that does not end on SIGTERM.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _serve(line: Connection, environment: Mapping[str, str], log: Path) -> None:
    """The process's whole life: what it is told, one after the other, until nobody is there any more."""
    answer_signals()
    os.environ.update(environment)
    with log.open("ab", buffering=0) as file:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    while True:
        try:
            work, args = line.recv()
        except EOFError:
            return
        try:
            answer = ("", work(*args))
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            answer = (type(error).__name__, str(error))
        line.send(answer)
