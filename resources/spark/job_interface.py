"""Running Spark jobs, wherever Spark is: what assets need of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True)
class JobRun:
    """A job that runs or ran elsewhere: which, what AWS calls it, its state as told last, and where its log is."""

    job: str
    id: str
    state: str
    reason: str
    logs: str
    """The address of a folder; EMR writes there some minutes later."""
    log_url: str = ""
    """Where people read it; empty where it is in no place that has a page."""
    console_url: str = ""
    """Where people look at the run."""


@runtime_checkable
class SparkJobs(Protocol):
    """Runs jobs `run(session, spec) -> report`."""

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """Run a job and return its report. Raises what the job raises, ResourceError where Spark can't run it."""

    def warm(self) -> None:
        """Make ready for a job what can be made ready beside what the caller goes on with. Raises nothing."""

    def last_run(self) -> JobRun | None:
        """The newest run of a job that run() started elsewhere; None where jobs run in this process."""

    def stop(self) -> None:
        """End what this process keeps of Spark, if it keeps anything."""


@runtime_checkable
class JobTexts(Protocol):
    """Jobs by name; their specs, reports and errors as texts. None of these texts has a secret."""

    def name(self, job: Callable[..., Any]) -> str:
        """What the job is called where it runs. Raises ValueError for one that can't run elsewhere."""

    def request(self, job: Callable[..., Any], spec: object, secrets: Mapping[str, str]) -> str:
        """The spec, with references to secrets by name in their place. Raises where it can't be carried."""

    def report(self, job: Callable[..., Any], text: str) -> Any:  # noqa: ANN401 - each job has a class of its own
        """The report of a job that succeeded. Raises where the text is none."""

    def error(self, text: str) -> Exception | None:
        """What the job raised, None where the text is a report."""
