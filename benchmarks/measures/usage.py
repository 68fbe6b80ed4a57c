"""Wall and CPU seconds of a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import psutil

from benchmarks.measures.repeated_work import repeated

T = TypeVar("T")
SAMPLE_SECONDS = 0.2


@dataclass(frozen=True)
class Usage:
    """Seconds by the clock, and CPU seconds of all processes."""

    seconds: float
    cpu_seconds: float

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


@dataclass
class CpuTimes:
    """The CPU seconds of this process and of all that it started, when they were last seen.

    Those are the JVM, Python workers, and the stack's engines. The kernel forgets the time of a process that no parent
    waits for, and PySpark's daemon waits for none of its workers: so processes that have ended keep their last value.
    """

    _seconds: dict[psutil.Process, float] = field(default_factory=dict)

    def sample(self) -> None:
        """Read the times of all processes that run."""
        own = psutil.Process()
        for process in (own, *own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                used = process.cpu_times()
                self._seconds[process] = used.user + used.system

    def total(self) -> float:
        """Return the sum, with the processes that have ended."""
        return sum(self._seconds.values())


def cpu_seconds(own: psutil.Process | None = None) -> float:
    """Return the CPU seconds of a process, by default this one, of all that it started, and of those it waited for."""
    own = own or psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total


def measured(work: Callable[[], T]) -> tuple[T, Usage]:
    """Do the work; return its result and what it used.

    The time of a process after its last sample is missing: up to 0.2 s for each that ends during the work.
    """
    times = CpuTimes()
    times.sample()
    started, used = time.monotonic(), times.total()
    with repeated(times.sample, SAMPLE_SECONDS):
        result = work()
        seconds = time.monotonic() - started
    times.sample()
    return result, Usage(seconds, times.total() - used)
