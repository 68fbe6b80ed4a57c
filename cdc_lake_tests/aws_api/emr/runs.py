"""Runs of Spark jobs: their ids, states and threads."""

from __future__ import annotations

import logging
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from infra.local.aws_api.errors import AwsError

log = logging.getLogger(__name__)
_FINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


@dataclass(frozen=True)
class SparkJob:
    """The arguments of spark-submit. All files are objects: s3://bucket/key."""

    entry: str
    arguments: Sequence[str]
    py_files: Sequence[str]
    jars: Sequence[str]
    settings: Mapping[str, str]


@dataclass
class Run:
    """One run of a job; times in seconds since the epoch."""

    id: str
    name: str
    job: SparkJob
    token: str = ""
    """A second request with the same token starts no other run."""
    state: str = "PENDING"
    """PENDING, RUNNING, SUCCEEDED, FAILED or CANCELLED."""
    reason: str = ""
    created: float = field(default_factory=time.time)
    ended: float | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


Execute = Callable[[Run], str]
"""Runs a job to its end, which comes soon after `cancelled` is set; returns why it failed, '' if it succeeded."""


class Runs:
    """The runs of one API; at most `at_once` run at the same time."""

    def __init__(self, execute: Execute, at_once: int) -> None:
        self._execute = execute
        self._lock = threading.RLock()
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="spark-run")
        self.all: dict[str, Run] = {}
        """By id, the oldest first."""

    def start(self, run: Run) -> Run:
        """Queue a run; return it, or the one that has the same token."""
        with self._lock:
            for each in self.all.values():
                if run.token and each.token == run.token:
                    return each
            self.all[run.id] = run
        self._threads.submit(self._run, run)
        return run

    def cancel(self, run: Run) -> bool:
        """Request the end of a run; return whether it had not ended yet."""
        with self._lock:
            if run.state in _FINAL:
                return False
            run.cancelled.set()
            if run.state == "PENDING":
                self._end(run, "CANCELLED", "Cancelled before it started.")
        return True

    def close(self) -> None:
        """Cancel all runs and wait for their end."""
        for each in self.all.values():
            self.cancel(each)
        self._threads.shutdown()

    def _run(self, run: Run) -> None:
        with self._lock:
            if run.state != "PENDING":
                return
            run.state = "RUNNING"
        try:
            reason = self._execute(run)
        except Exception as error:
            log.exception("Run %s failed.", run.id)
            reason = f"{type(error).__name__}: {error}"
        with self._lock:
            if run.cancelled.is_set():
                self._end(run, "CANCELLED", "Cancelled.")
            else:
                self._end(run, "FAILED" if reason else "SUCCEEDED", reason)

    def _end(self, run: Run, state: str, reason: str) -> None:
        run.state, run.reason, run.ended = state, reason, time.time()


def new_id(prefix: str) -> str:
    """Return an id that is not in use."""
    return prefix + secrets.token_hex(10)


def spark_job(options: Sequence[str], settings: Mapping[str, str] | None = None) -> SparkJob:
    """Parse spark-submit's options, then the program and its arguments. Raises AwsError for other options."""
    found, lists, rest = dict(settings or {}), {"--py-files": "", "--jars": ""}, list(options)
    while rest and rest[0].startswith("-"):
        option, value, *rest = rest
        if option == "--conf":
            name, _, found[name] = value.partition("=")
        elif option in lists:
            lists[option] = value
        elif (option, value) != ("--deploy-mode", "client"):
            raise AwsError("ValidationException", f"Cannot run spark-submit with {shlex.join((option, value))}.")
    py_files, jars = (tuple(filter(None, each.split(","))) for each in lists.values())
    return SparkJob(rest[0], tuple(rest[1:]), py_files, jars, found)
