"""A server that runs Spark jobs for other processes of the same user, in one session that stays warm."""

from __future__ import annotations

import logging
import os
import pickle
import queue
import socketserver
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psutil
from py4j.protocol import Py4JError, Py4JJavaError

from resources.errors import JobFailed, ResourceError
from resources.spark.job_server.messages import Failed, Report, Request, Retired, pickled_failure
from resources.spark.local import LocalSpark

MAX_RUNNING_JOBS = 2
"""The maximum number of jobs at the same time. Others wait in the order of their requests."""
MEMORY_BYTES = 3 * 2**30
"""The server ends when it has no job and uses more memory than this, with its JVM and Python workers."""
_ACCEPT_TIMEOUT_SECONDS = 1.0
_MEASURE_SECONDS = 10.0
_CANCEL_SECONDS = 1.0
_JVM_END_SECONDS = 5.0
"""How long a JVM that does not answer may take until it has ended: its connections are closed before."""
_JVM_HINT = (
    "Start the run again: another server runs its jobs. If the kernel killed the JVM to free memory, lower"
    " spark.driver.memory."
)
_OLDER_CODE = JobFailed(
    "Cannot read a Spark job: the run's process has older code than the Spark server.",
    "Choose Reload definitions in Dagster, then start the run again.",
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Call:
    """A request, and the function that sends the answer. `group` is the id of the request's Spark jobs."""

    request: Request
    send: Callable[[bytes], object]
    group: str = field(default_factory=lambda: str(uuid4()))
    abandoned: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class _Handler(socketserver.StreamRequestHandler):
    """Reads one request, and waits until its sender closes the connection."""

    server: JobServer

    def handle(self) -> None:
        """Queue the request. If the sender closes the connection before the job has ended, cancel the job."""
        try:
            version: str = pickle.load(self.rfile)  # noqa: S301 - only the server's user can send
            if version != self.server.version:
                self._retire()
                return
            request: Request = pickle.load(self.rfile)  # noqa: S301
        except (EOFError, pickle.UnpicklingError, ConnectionError):
            return  # the sender was killed, or wanted only to start the server
        except Exception as error:  # noqa: BLE001 - of any kind: a class of the sender's code differs from this server's
            _log.warning("Cannot read a job", exc_info=error)
            with suppress(ConnectionError):
                self.wfile.write(pickle.dumps(Failed(_OLDER_CODE)))
            return
        call = self.server.call(request, self.wfile.write)
        with suppress(ConnectionError):
            self.connection.recv(1)
        self.server.abandon(call)

    def _retire(self) -> None:
        _log.info("Settings or code have changed: the server ends after its running jobs.")
        self.server.retire()
        with suppress(ConnectionError):
            self.wfile.write(pickle.dumps(Retired()))


class JobServer(socketserver.ThreadingUnixStreamServer):
    """Accepts requests at a Unix socket, and runs their jobs.

    It ends when the process `owner` has ended. It retires, which means that it ends after the running jobs, if it uses
    more than `memory_bytes`, if its JVM has ended, or if a request has another version. A job whose sender closes the
    connection, for example because it was killed, is cancelled.
    """

    daemon_threads = True
    request_queue_size = 64
    timeout = _ACCEPT_TIMEOUT_SECONDS

    def __init__(
        self, path: Path, spark: LocalSpark, version: str, owner: int, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        before = os.umask(0o177)  # the socket's mode is 0600
        try:
            super().__init__(str(path), _Handler)
        finally:
            os.umask(before)
        self.version = version
        self._path, self._spark, self._owner, self._memory_bytes = path, spark, owner, memory_bytes
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._retired = self._idle = False
        # PySpark binds a Python thread to a thread of the JVM, which is not freed when a thread ends.
        for number in range(MAX_RUNNING_JOBS):
            threading.Thread(target=self._work, name=f"job-{number}", daemon=True).start()

    def serve(self) -> None:
        """Serve requests; return when the server has retired and the last job has ended."""
        measured = 0.0
        while True:
            retired, self._idle = self._retired, False
            self.handle_request()
            if not psutil.pid_exists(self._owner):
                _log.info("The owner, process %s, has ended: the server ends.", self._owner)
                return
            if time.monotonic() > measured + _MEASURE_SECONDS:
                measured = time.monotonic()
                if self._memory() > self._memory_bytes:
                    _log.info(
                        "The session uses more than %.1f GB: the server ends after its running jobs.",
                        self._memory_bytes / 2**30,
                    )
                    self.retire()
            # Senders that connected before the socket was removed are in its queue. It is empty if a request that was
            # awaited after that timed out.
            if retired and self._idle and self._open == 0:
                return

    def handle_timeout(self) -> None:
        """Note that no sender waits."""
        self._idle = True

    def retire(self) -> None:
        """Remove the socket, so that the next request starts another server."""
        with self._lock:
            if not self._retired:
                self._retired = True
                self._path.unlink(missing_ok=True)

    def call(self, request: Request, send: Callable[[bytes], object]) -> _Call:
        """Queue a request; `send` sends the answer."""
        call = _Call(request, send)
        self._calls.put(call)
        return call

    def abandon(self, call: _Call) -> None:
        """Wait for the end of a call whose sender has closed the connection; cancel the Spark jobs that it starts."""
        call.abandoned.set()
        while not call.ended.wait(_CANCEL_SECONDS):
            self._spark.session().sparkContext.cancelJobGroup(call.group)

    def process_request(self, request: object, client_address: object) -> None:
        """Count the open connections, until shutdown_request()."""
        with self._lock:
            self._open += 1
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def shutdown_request(self, request: object) -> None:
        """Close the connection."""
        super().shutdown_request(request)  # type: ignore[arg-type]
        with self._lock:
            self._open -= 1

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            try:
                if not call.abandoned.is_set():
                    answer = self._answer(call)
                    with suppress(ConnectionError):  # the sender is gone
                        call.send(answer)
            finally:
                call.ended.set()

    def _answer(self, call: _Call) -> bytes:
        request = call.request
        if self._lost_session():
            return pickle.dumps(Retired())
        try:
            context = self._spark.session().sparkContext
            context.setJobGroup(call.group, f"{request.job.__module__}", interruptOnCancel=True)
            return pickle.dumps(Report(self._spark.run(request.job, request.spec)))
        except Exception as error:  # noqa: BLE001 - the sender raises it
            # Without an exception of Java's, py4j's error is that of the connection to the JVM.
            lost = isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)
            name = f"{request.job.__module__}.{request.job.__qualname__}"
            return pickled_failure(self._lost_session(_JVM_END_SECONDS if lost else 0.0) or error, name)

    def _lost_session(self, wait_seconds: float = 0.0) -> ResourceError | None:
        """Return None while the session can run jobs; else retire and return the reason."""
        try:
            self._spark.require_alive(wait_seconds)
        except ResourceError as error:
            self.retire()
            return ResourceError(error.message, _JVM_HINT)
        return None

    def _memory(self) -> int:
        total, process = 0, psutil.Process()
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += each.memory_info().rss
        return total
