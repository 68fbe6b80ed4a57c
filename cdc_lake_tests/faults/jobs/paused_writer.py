"""A writer that is paused at a failpoint of its job, and whose lease is not renewed meanwhile.

The writer is a waiting thread of this process. `faults/writers/writer_process.py` stops a process by SIGSTOP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from typing import Any

import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.table.lease import Lease
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec

LEASE_SECONDS = 2.0
TIMEOUT_SECONDS = 120.0


@dataclass
class Writer:
    """A job in its own thread, paused when it reaches a failpoint for the first time."""

    spec: UpsertSpec
    failpoint: str
    job: Callable[[UpsertSpec], Any]
    paused: Event = field(default_factory=Event)
    resumed: Event = field(default_factory=Event)
    report: Any = None
    error: Exception | None = None

    def start(self) -> Writer:
        """Run to the failpoint."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.paused.wait(TIMEOUT_SECONDS), (
            f"{self.spec.owner} has not reached {self.failpoint}; its error: {self.error}"
        )
        return self

    def finish(self) -> Writer:
        """Run to the end."""
        self.resumed.set()
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()
        return self

    def is_paused(self) -> bool:
        """Return whether the job is paused."""
        return self.paused.is_set() and not self.resumed.is_set()

    def _run(self) -> None:
        try:
            self.report = self.job(replace(self.spec, lease_seconds=LEASE_SECONDS, lease_wait_seconds=60))
        except Exception as error:  # noqa: BLE001 - the test checks it
            self.error = error


Pause = Callable[[UpsertSpec, str, Callable[[UpsertSpec], Any]], Writer]


@pytest.fixture
def pause_writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pause]:
    """Return a function that starts a job, and returns when it is paused at a failpoint."""
    writers: list[Writer] = []
    renew = Lease.renew

    def reached(name: str) -> None:
        for writer in writers:
            if writer.failpoint == name and not writer.paused.is_set():
                writer.paused.set()
                writer.resumed.wait(TIMEOUT_SECONDS)
                return

    def renewed(lease: Lease) -> None:
        if any(writer.is_paused() and writer.spec.owner == lease.claim.owner for writer in writers):
            raise TimeoutError("its process is stopped")
        renew(lease)

    def started(spec: UpsertSpec, place: str, job: Callable[[UpsertSpec], Any]) -> Writer:
        writers.append(Writer(spec, place, job))
        return writers[-1].start()

    monkeypatch.setattr(failpoints, "reached", reached)
    monkeypatch.setattr(Lease, "renew", renewed)
    yield started
    for writer in writers:
        writer.finish()
