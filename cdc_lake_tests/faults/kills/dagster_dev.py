"""`cdc-lake dev` on a stack: start it, find its processes, and restart it after a fault."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.cli.local_stack.process_session import END_SECONDS, REMAINING_SECONDS
from cdc_lake_tests.helpers.command_line import BIN, ROOT, CommandLine

_STOP_SECONDS = END_SECONDS + REMAINING_SECONDS + 20
_FORK_SERVER = "multiprocessing.forkserver"
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


class DagsterDev:
    """Dagster's UI, daemon and code server on a stack, and the runs that they launch; `starts` counts the starts."""

    def __init__(self, cli: CommandLine, log: Path) -> None:
        self._cli, self._log = cli, log
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def ensure(self) -> None:
        """Start it if it does not run."""
        if self._process is not None and self._process.poll() is None:
            return
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        self.starts += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [BIN / "cdc-lake", "dev", "--port", str(port)],
                env=self._cli.environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_ready(self, seconds: float = 180) -> None:
        """Wait until the daemon runs and evaluates sensors."""
        Retrying(retry=retry_if_result(lambda found: not found), stop=stop_after_delay(seconds), wait=wait_fixed(0.5))(
            self.daemons
        )

    def daemons(self) -> list[psutil.Process]:
        """Return the daemon, which evaluates the sensors and launches runs, if there is one."""
        return self._sorted(each for each in self._all() if "dagster._daemon" in " ".join(_command(each)))

    def runs(self) -> list[psutil.Process]:
        """Return the processes of the current runs, oldest first: forks of the process that imports the definitions."""
        forks = {each.pid for each in self._all() if _FORK_SERVER in " ".join(_command(each))}
        return self._sorted(each for each in self._all() if each.pid in forks and _parent(each) in forks)

    def servers(self) -> list[psutil.Process]:
        """Return the Spark servers, oldest first: more than one while one is replaced."""
        return self._with("cdc_lake.spark_server")

    def sparks(self) -> list[psutil.Process]:
        """Return the JVMs of the Spark sessions, oldest first; PySpark starts each by spark-submit."""
        return self._with("org.apache.spark.deploy.SparkSubmit")

    def _with(self, argument: str) -> list[psutil.Process]:
        """Return the processes with this argument on their command line, oldest first."""
        return self._sorted(each for each in self._all() if argument in _command(each))

    def _sorted(self, processes: Iterator[psutil.Process]) -> list[psutil.Process]:
        return sorted(processes, key=lambda each: each.create_time())

    def stop(self) -> None:
        """Stop it and all processes that it or an earlier start left."""
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        left = list(self._all())
        for process in left:
            with suppress(*_GONE):
                process.kill()
        psutil.wait_procs(left, timeout=10)
        if self._process is not None:
            self._process.wait(_STOP_SECONDS)

    def _all(self) -> Iterator[psutil.Process]:
        """Yield the processes with this stack's environment; the stack's components do not have it."""
        home = self._cli.environment["CDC_LAKE_HOME"]
        folder = f"{home}/dagster"
        for process in psutil.process_iter():
            with suppress(*_GONE):
                environment = process.environ()
                if environment.get("CDC_LAKE_HOME") == home and environment.get("DAGSTER_HOME") == folder:
                    yield process


def _parent(process: psutil.Process) -> int | None:
    with suppress(*_GONE):
        return process.ppid()
    return None


def _command(process: psutil.Process) -> list[str]:
    with suppress(*_GONE):
        return list(process.cmdline())
    return []
