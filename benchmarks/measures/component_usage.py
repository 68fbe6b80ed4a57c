"""Memory and CPU time of a stack's components and of cdc-lake's own processes, sampled while something runs.

A process's memory is its proportional set size (PSS): pages that processes share, such as PostgreSQL's buffers and the
pages of forked Python workers, count once in the sum.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.measures.repeated_work import repeated
from infra.folders import HOME_VARIABLE
from infra.local.stack import process

SAMPLE_SECONDS = 5.0
JVM, PYTHON, BENCHMARK = "cdc-lake: Spark's JVM", "cdc-lake: Python", "the benchmark itself"
Processes = Mapping[str, list[psutil.Process]]
"""By component."""


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


@dataclass
class Cpu:
    """The samples: the time (monotonic), and the CPU seconds by component, with those of processes that have ended."""

    samples: list[tuple[float, Mapping[str, float]]] = field(default_factory=list)
    _used: dict[tuple[str, psutil.Process], float] = field(default_factory=dict)

    def add(self, processes: Processes) -> None:
        """Add a sample.

        The CPU time of a process after its last sample, and of a process that no sample contains, is missing: up to
        5 s a process.
        """
        for component, found in processes.items():
            for each in found:
                with suppress(psutil.NoSuchProcess):
                    times = each.cpu_times()
                    self._used[component, each] = times.user + times.system
        totals: dict[str, float] = defaultdict(float)
        for (component, _), seconds in self._used.items():
            totals[component] += seconds
        self.samples.append((time.monotonic(), totals))

    def cores(self) -> Mapping[str, float]:
        """Return the average number of busy cores in the second half of the samples, by component."""
        if len(self.samples) < 2:
            return {}
        (started, before), (ended, after) = self.samples[(len(self.samples) - 1) // 2], self.samples[-1]
        return {name: (seconds - before.get(name, 0.0)) / (ended - started) for name, seconds in after.items()}


@dataclass
class ComponentUsage:
    """Samples of memory and of CPU time."""

    memory: Memory = field(default_factory=Memory)
    cpu: Cpu = field(default_factory=Cpu)


def processes(home: Path) -> Processes:
    """Return the processes of the stack's components, and the others that were started for this state folder.

    Those are found by CDC_LAKE_HOME in their environment, because the Spark server outlives the run that started it.
    """
    found: dict[str, list[psutil.Process]] = defaultdict(list)
    for component in process.find(home):
        found[component.component].append(component.process)
    for each in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            # `python -m benchmarks` starts this process with the variable.
            if each.pid != os.getpid() and each.environ().get(HOME_VARIABLE) == str(home):
                found[JVM if each.name() == "java" else PYTHON].append(each)
    return found


def memory_of(found: Processes) -> Mapping[str, int]:
    """Return the bytes by component."""
    return {name: sum(_bytes(each) for each in running) for name, running in found.items()}


@contextmanager
def sampled(home: Path) -> Iterator[ComponentUsage]:
    """Sample in a thread during a block."""
    usage = ComponentUsage()

    def sample() -> None:
        found = processes(home)
        usage.memory.samples.append(memory_of(found))
        usage.cpu.add({**found, BENCHMARK: [psutil.Process()]})

    with repeated(sample, SAMPLE_SECONDS):
        yield usage


def _bytes(found: psutil.Process) -> int:
    try:
        return int(found.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0
