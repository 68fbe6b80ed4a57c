"""Memory of a stack's components and of cdc-lake's own processes, sampled while something runs.

A process's memory is its proportional set size (PSS): pages that processes share, such as PostgreSQL's buffers and the
pages of forked Python workers, count once in the sum.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from infra.folders import HOME_VARIABLE
from infra.local.stack import process

SAMPLE_SECONDS = 5.0
JVM, PYTHON = "cdc-lake: Spark's JVM", "cdc-lake: Python"


@dataclass
class Memory:
    """The samples: bytes by component."""

    samples: list[Mapping[str, int]] = field(default_factory=list)

    def peak(self) -> tuple[int, Mapping[str, int]]:
        """Return the largest sum of a sample, and the sample."""
        highest = max(self.samples, key=lambda sample: sum(sample.values()))
        return sum(highest.values()), highest

    def slope(self, seconds: float = SAMPLE_SECONDS) -> float:
        """Return how many bytes an hour the sum grew in the second half of the samples, by least squares."""
        sums = [sum(sample.values()) for sample in self.samples[len(self.samples) // 2 :]]
        middle, mean = (len(sums) - 1) / 2, sum(sums) / len(sums)
        spread = sum((at - middle) ** 2 for at in range(len(sums)))
        rise = sum((at - middle) * (value - mean) for at, value in enumerate(sums))
        return 0.0 if spread == 0 else rise / spread * 3600 / seconds


def sample(home: Path) -> Mapping[str, int]:
    """Return the bytes of the stack's components, and of the other processes that were started for this state folder.

    Those are found by CDC_LAKE_HOME in their environment, because the Spark server outlives the run that started it.
    """
    found: dict[str, int] = defaultdict(int)
    for component in process.find(home):
        found[component.component] += _bytes(component.process)
    for each in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if each.environ().get(HOME_VARIABLE) == str(home):
                found[JVM if each.name() == "java" else PYTHON] += _bytes(each)
    return found


@contextmanager
def sampled(home: Path) -> Iterator[Memory]:
    """Sample the memory in a thread during a block."""
    memory, stop = Memory(), threading.Event()

    def run() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            memory.samples.append(sample(home))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield memory
    finally:
        stop.set()
        thread.join()


def _bytes(found: psutil.Process) -> int:
    try:
        return int(found.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0
