"""The base class of objects that change how some Spark jobs are run, and pass everything else to `SparkJobs`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from resources.spark.job_interface import JobRun, SparkJobs

S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class SparkWrapper:
    """Passes all calls to `spark` (implements `SparkJobs`)."""

    spark: SparkJobs

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """See SparkJobs."""
        return self.spark.run(job, spec)

    def warm(self) -> None:
        """See SparkJobs."""
        self.spark.warm()

    def last_run(self) -> JobRun | None:
        """See SparkJobs."""
        return self.spark.last_run()

    def cancel(self) -> None:
        """See SparkJobs."""
        self.spark.cancel()

    def require_alive(self) -> None:
        """See SparkJobs."""
        self.spark.require_alive()

    def stop(self) -> None:
        """See SparkJobs."""
        self.spark.stop()
