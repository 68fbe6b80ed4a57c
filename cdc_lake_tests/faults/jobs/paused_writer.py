"""A writer that is paused at a place of its job, and whose lease is not renewed meanwhile.

A pause is played in this process: the writer waits, as if it were stopped by SIGSTOP (the tests of faults do that to
processes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from typing import Any

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.table.lease import Lease
from cdc_lake.jobs.apply.upsert import UpsertSpec

SECONDS = 2.0
BOUND = 120.0


@dataclass
class Writer:
    """One job in a thread of its own, paused the first time that it gets to a place."""

    spec: UpsertSpec
    place: str
    job: Callable[[UpsertSpec], Any]
    paused: Event = field(default_factory=Event)
    go_on: Event = field(default_factory=Event)
    report: Any = None
    error: Exception | None = None

    def start(self) -> Writer:
        """Run until the place is reached."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.paused.wait(BOUND), f"{self.spec.owner} ended before it got to {self.place}: {self.error}"
        return self

    def wake(self) -> Writer:
        """Run on to the end."""
        self.go_on.set()
        self._thread.join(BOUND)
        assert not self._thread.is_alive()
        return self

    def asleep(self) -> bool:
        """Whether it is in its pause."""
        return self.paused.is_set() and not self.go_on.is_set()

    def _run(self) -> None:
        try:
            self.report = self.job(replace(self.spec, lease_seconds=SECONDS, lease_wait_seconds=60))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


Pause = Callable[[UpsertSpec, str, Callable[[UpsertSpec], Any]], Writer]


@pytest.fixture
def pause_writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pause]:
    """Starts a job (its spec has the owner) that pauses at a place."""
    writers: list[Writer] = []
    renew = Lease.renew

    def reached(name: str) -> None:
        for writer in writers:
            if writer.place == name and not writer.paused.is_set():
                writer.paused.set()
                writer.go_on.wait(BOUND)
                return

    def renewed(lease: Lease) -> None:
        if any(writer.asleep() and writer.spec.owner == lease.claim.owner for writer in writers):
            raise TimeoutError("its process is stopped")
        renew(lease)

    def started(spec: UpsertSpec, place: str, job: Callable[[UpsertSpec], Any]) -> Writer:
        writers.append(Writer(spec, place, job))
        return writers[-1].start()

    monkeypatch.setattr(failpoints, "reached", reached)
    monkeypatch.setattr(Lease, "renew", renewed)
    yield started
    for writer in writers:
        writer.wake()
