"""Wall and CPU seconds of a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import psutil

T = TypeVar("T")


@dataclass(frozen=True)
class Usage:
    """Seconds by the clock, and CPU seconds of all processes."""

    seconds: float
    cpu_seconds: float

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


def cpu_seconds(own: psutil.Process | None = None) -> float:
    """Return the CPU seconds of a process, by default this one, and of all that it started.

    Those are the JVM, Python workers, and the stack's engines.
    """
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
    """Do the work; return its result and what it used."""
    started, used = time.monotonic(), cpu_seconds()
    result = work()
    return result, Usage(time.monotonic() - started, cpu_seconds() - used)
