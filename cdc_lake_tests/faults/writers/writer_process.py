"""The writer process of the fault tests: it runs functions on request, and a test can kill or stop it."""

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

TIMEOUT_SECONDS = 240.0

_processes = multiprocessing.get_context("forkserver")
# The import of Dagster and the definitions takes seconds: the fork server does it once for all writers.
_processes.set_forkserver_preload(["cdc_lake_tests.faults.writers.writer_actions"])


class Died(Exception):  # noqa: N818 - what happened to the writer, not an error of the test
    """The writer ended before it returned a result; `code` is its exit code as in Popen.returncode."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"the writer ended with {code}")
        self.code = code


class Failed(Exception):  # noqa: N818 - the writer's error, not an error of the test
    """The function that the writer called raised an exception; `kind` is the name of its class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Writer:
    """A process that uses a running stack. It ends when the `with` block ends, or earlier if a test kills it."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._pipe, child_end = _processes.Pipe()
        self._process = _processes.Process(target=_serve, args=(child_end, dict(environment), log), daemon=True)
        self._process.start()
        child_end.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        if self._process.is_alive() and self.stopped:
            self.send(signal.SIGCONT)
        self._process.join(30)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    @property
    def pid(self) -> int:
        """Return the process id."""
        pid = self._process.pid
        assert pid is not None
        return pid

    @property
    def stopped(self) -> bool:
        """Return whether the process is stopped by SIGSTOP."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        return False

    def do(self, work: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401 - what the work returns
        """Call `work` in the process and return its result. Raises Failed if it raised, Died if the process ended."""
        self.begin(work, *args)
        return self.end()

    def begin(self, work: Callable[..., Any], *args: object) -> None:
        """Start to call `work` in the process; end() returns its result."""
        self._pipe.send((work, args))

    def end(self, seconds: float = TIMEOUT_SECONDS) -> Any:  # noqa: ANN401 - what the work returns
        """Wait for the result of begin(). Raises Failed, Died or TimeoutError."""
        ready = wait([self._pipe, self._process.sentinel], seconds)
        if not ready:
            raise TimeoutError(f"the writer returned no result within {seconds:.0f} s")
        try:
            kind, answer = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(30)
            raise Died(self._process.exitcode) from None
        if kind:
            raise Failed(kind, answer)
        return answer

    def wait_stopped(self, seconds: float = TIMEOUT_SECONDS) -> None:
        """Wait until the process is stopped by SIGSTOP."""
        Retrying(
            retry=retry_if_result(lambda is_stopped: not is_stopped),
            stop=stop_after_delay(seconds),
            wait=wait_fixed(0.1),
        )(lambda: self.stopped)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


def restore_signal_handlers() -> None:
    """Restore the default handlers of SIGTERM and SIGINT, which nohup and some CI runners ignore.

    Child processes inherit ignored signals, and Dagster waits half a minute for each process that ignores SIGTERM.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _serve(pipe: Connection, environment: Mapping[str, str], log: Path) -> None:
    """Run the requested work in the writer's process until the other end of the pipe is closed."""
    restore_signal_handlers()
    os.environ.update(environment)
    with log.open("ab", buffering=0) as file:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    while True:
        try:
            work, args = pipe.recv()
        except EOFError:
            return
        try:
            answer = ("", work(*args))
        except Exception as error:  # noqa: BLE001 - it is sent to the test
            answer = (type(error).__name__, str(error))
        pipe.send(answer)
