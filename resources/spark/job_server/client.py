"""Spark in a server process that the runs of a machine share, as a Dagster resource."""

from __future__ import annotations

import fcntl
import logging
import pickle
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import dagster as dg
from pydantic import Field, PrivateAttr

from resources.errors import JobFailed
from resources.spark.job_interface import JobRun
from resources.spark.job_server.messages import Failed, Report, Request, Retired, version
from resources.spark.local import LocalSpark
from resources.waiting import until

S = TypeVar("S")
R = TypeVar("R")

START_SECONDS = 60.0
"""How long a server may take from its start until it accepts requests. It starts Spark after that."""
_PAUSE_SECONDS = 0.02
_log = logging.getLogger(__name__)


class SparkServerClient(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Runs jobs in the server at `path`, and starts the server if it does not run (implements `SparkJobs`).

    A run's process then needs no Spark session of its own, whose start takes longer than most jobs.

    Usage:

        spark = profile.spark()  # with CDC_LAKE_SPARK_SOCKET, which `cdc-lake dev` sets
        report = spark.run(upsert.run, spec)
    """

    path: str = Field(description="The server's Unix socket, in a folder that only this user may enter.")
    spark: LocalSpark
    """The server's session."""
    owner: int
    """The id of the process that launches the runs: the server ends when it has ended."""
    log: str
    """The server's log, in an existing folder."""
    command: list[str]
    """The program of the server. It gets the path, the version and its owner's process id as arguments."""
    code: list[str]
    """Folders of the code that jobs use. The server is replaced if a module in them or a settings file has changed."""

    _open: Any = PrivateAttr(default_factory=set)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """Run a job and return its report. Raises what the job raises, and JobFailed if the server ends before it."""
        while True:
            request = pickle.dumps(self.version()) + pickle.dumps(Request(job, spec))
            with self._connection() as connection:
                answer = self._answer(connection, request)
            match answer:
                case Report(value):
                    return value  # type: ignore[no-any-return]
                case Failed(error):
                    raise error
                case Retired():
                    continue  # that server accepts no more connections
            raise TypeError(f"unknown answer of the Spark server: {answer!r}")

    def version(self) -> str:
        """Return the version of settings and code; the server of another version is replaced."""
        settings = self.spark.model_dump_json(exclude={"java_options", "hint"})
        files = (*self.spark.properties, *filter(None, [self.spark.log4j]))
        return version(settings, map(Path, (*self.code, *files)))

    def warm(self) -> None:
        """Start the server and its session in a thread. Raises nothing: run() repeats a failed start."""
        threading.Thread(target=self._warm, name="spark-warming", daemon=True).start()

    def last_run(self) -> JobRun | None:
        """Return None: jobs run on this machine."""
        return None

    def cancel(self) -> None:
        """Close the connections of this process's jobs, so that the server cancels them."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # it is closed already
                    connection.shutdown(socket.SHUT_RDWR)

    def require_alive(self) -> None:
        """Do nothing: a server whose session has ended is replaced."""

    def stop(self) -> None:
        """Do nothing: the server serves other processes."""

    def _warm(self) -> None:
        try:
            with self._connection():
                pass
        except Exception:  # noqa: BLE001 - run() raises it
            _log.debug("Cannot start the Spark server before the first job", exc_info=True)

    def _answer(self, connection: socket.socket, request: bytes) -> object:
        """Return the server's answer to a request. Raises JobFailed if the server closes the connection without one."""
        with connection.makefile("rb") as stream:
            try:
                connection.sendall(request)
                return pickle.load(stream)  # noqa: S301 - only the user's own server listens there
            except (EOFError, ConnectionError) as error:
                raise JobFailed(
                    "Cannot complete a Spark job: it was cancelled, or the Spark server ended.",
                    f"Start the run again. It starts another server if necessary; the server's log is {self.log}.",
                ) from error

    @contextmanager
    def _connection(self) -> Iterator[socket.socket]:
        with _connected(Path(self.path)) or self._start() as connection:
            with self._lock:
                self._open.add(connection)
            try:
                yield connection
            finally:
                with self._lock:
                    self._open.discard(connection)

    def _start(self) -> socket.socket:
        """Start the server, unless another process has started it meanwhile; return a connection."""
        path = Path(self.path)
        with path.with_suffix(".lock").open("w") as lock, Path(self.log).open("ab") as log:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (connection := _connected(path)) is not None:
                return connection
            path.unlink(missing_ok=True)  # of a server that was killed
            arguments = [*self.command, self.path, self.version(), str(self.owner)]
            server = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            connection = until(
                lambda: _connected_to(server, path, log.name),
                bool,
                seconds=START_SECONDS,
                what=f"the Spark server to accept requests at {path}",
                hint=f"Its log is {log.name}.",
                pause_seconds=_PAUSE_SECONDS,
            )
            return cast(socket.socket, connection)


def _connected(path: Path) -> socket.socket | None:
    """Return a connection to the server at `path`; None if there is no server."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _connected_to(server: subprocess.Popen[bytes], path: Path, log: str) -> socket.socket | None:
    """Return a connection to a server that was started; None while it starts. Raises JobFailed if it has ended."""
    if (code := server.poll()) is not None:
        raise JobFailed(f"Cannot start the Spark server: its process ended with code {code}.", f"Read its log, {log}.")
    return _connected(path)
