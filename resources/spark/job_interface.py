"""The interface that assets use to run Spark jobs, on this machine or remotely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True)
class JobRun:
    """A remote run of a job: its id at AWS, its last known state, and where its log is."""

    job: str
    id: str
    state: str
    reason: str
    logs: str
    """The URI of a folder; EMR writes the log there some minutes later."""
    log_url: str = ""
    """The URL of the log's page in the AWS console; empty if the console does not show the log."""
    console_url: str = ""
    """The URL of the run's page in the AWS console."""


@runtime_checkable
class SparkJobs(Protocol):
    """Runs jobs `run(session, spec) -> report`."""

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """Run a job and return its report. Raises what the job raises, ResourceError if Spark cannot run it."""

    def warm(self) -> None:
        """Prepare for the first job in the background. Raises nothing."""

    def last_run(self) -> JobRun | None:
        """Return the newest remote run of this thread; None if jobs run on this machine."""

    def cancel(self) -> None:
        """Cancel the jobs that other threads of this process run; their calls of run() raise an error."""

    def require_alive(self) -> None:
        """Raise ResourceError if this process's Spark session cannot run jobs any more, because its JVM has ended."""

    def stop(self) -> None:
        """End this process's Spark session, if there is one."""


@runtime_checkable
class JobTexts(Protocol):
    """Converts jobs to names, and specs, reports and errors to and from text. The texts contain no secrets."""

    def name(self, job: Callable[..., Any]) -> str:
        """Return the job's name. Raises ValueError for a job that cannot run remotely."""

    def request(self, job: Callable[..., Any], spec: object, secrets: Mapping[str, str]) -> str:
        """Return the spec as text, with secrets replaced by references. Raises if it cannot be serialized."""

    def report(self, job: Callable[..., Any], text: str) -> Any:  # noqa: ANN401 - each job has a class of its own
        """Return the report of a successful job. Raises if the text is not a report."""

    def error(self, text: str) -> Exception | None:
        """Return the error that the job raised, None if the text is a report."""
