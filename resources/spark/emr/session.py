"""Spark jobs in one application on EMR that keeps running, for a process that runs a job every few seconds."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from resources.errors import JobFailed
from resources.spark.emr.jobs import EmrJobs
from resources.spark.job_interface import JobRun
from resources.waiting import until

S = TypeVar("S")
R = TypeVar("R")

_POLL_SECONDS = 0.25
_CLOSED = b"{}"
"""As in cdc_lake/jobs/remote/session.py: the request after which a session runs no more jobs."""
_log = logging.getLogger(__name__)


@dataclass
class _Open:
    """A session that was started; `requests` is the number of its requests so far."""

    prefix: str
    run: JobRun
    requests: int = 0


class EmrSession:
    """Runs jobs in a session on EMR, which the first job starts (implements `SparkJobs`).

    The requests are numbered objects, which the session executes in order and in parallel
    (cdc_lake/jobs/remote/session.py). A session that has closed itself is replaced. If it fails, so do the jobs that it
    has not reported, and the next job starts another session.
    """

    def __init__(self, jobs: EmrJobs) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()
        self._session: _Open | None = None

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """Run a job and return its report. Raises what the job raises, and JobFailed if the session ends before."""
        name = self._jobs.texts.name(job)
        body = json.dumps({"job": name, "spec": self._jobs.texts.request(job, spec, self._jobs.secrets)}).encode()
        session, number = self._submit(body)
        text = self._report(session, number)
        error = self._jobs.texts.error(text)
        if error is not None:
            raise error
        report: R = self._jobs.texts.report(job, text)
        return report

    def warm(self) -> None:
        """Do nothing: the first job starts the session."""

    def last_run(self) -> JobRun | None:
        """Return the run of the current session."""
        return None if self._session is None else self._session.run

    def cancel(self) -> None:
        """Cancel the session, with all its jobs."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            self._jobs.cancel_run(session.run)

    def require_alive(self) -> None:
        """Do nothing: run() replaces a session that has ended."""

    def stop(self) -> None:
        """Close the session: it ends after its running jobs."""
        with self._lock:
            session, self._session = self._session, None
            if session is not None:
                self._jobs.files.put_new(f"{session.prefix}requests/{session.requests + 1}.json", _CLOSED)

    def _submit(self, body: bytes) -> tuple[_Open, int]:
        """Create the next request; return its session and number."""
        with self._lock:
            while True:
                session = self._session = self._session or self._started()
                number = session.requests + 1
                name = f"{session.prefix}requests/{number}.json"
                # An own put whose response was lost also finds the object. A number counts once its object exists,
                # because the session waits for each number.
                if self._jobs.files.put_new(name, body) or self._jobs.files.read(name) == body:
                    session.requests = number
                    return session, number
                _log.info("The session %s has closed itself.", session.run.id)
                self._session = None

    def _started(self) -> _Open:
        prefix = f"runs/session-{uuid4()}/"
        run = self._jobs.open_session(prefix)
        _log.info("The session %s has started. EMR will write its log to %s", run.id, run.logs)
        return _Open(prefix, run)

    def _report(self, session: _Open, number: int) -> str:
        """Wait for the report of a request. Raises JobFailed if the session ends without it."""
        name, checked = f"{session.prefix}reports/{number}.json", time.monotonic()

        def read() -> bytes | None:
            nonlocal checked
            text = self._jobs.with_retries(lambda: self._jobs.files.read(name))
            if text is None and time.monotonic() > checked + self._jobs.poll_seconds:
                ended = self._ended(session)
                checked = time.monotonic()
                text = self._jobs.files.read(name) if ended else None
                if ended and text is None:
                    raise JobFailed(
                        f"Cannot use the result of {self._jobs.label(ended)}: it ended as {ended.state} before it "
                        f"reported request {number}: {(ended.reason or 'EMR gives no reason').rstrip('. ')}.",
                        "The next job starts another session. Read the log of this one in "
                        f"{ended.logs}, some minutes after the end.",
                    )
            return text

        label = self._jobs.label(session.run)
        text = until(
            read, bool, seconds=self._jobs.run_seconds, what=f"the report of {label}", pause_seconds=_POLL_SECONDS
        )
        return (text or b"").decode()

    def _ended(self, session: _Open) -> JobRun | None:
        """Return the run of a session that has ended, and forget it; None if it is still running."""
        run: JobRun = self._jobs.with_retries(lambda: self._jobs.refreshed(session.run))
        if not self._jobs.is_final(run.state):
            return None
        with self._lock:
            if self._session is session:
                self._session = None
        return run
