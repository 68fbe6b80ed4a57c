"""A table that is read while a job in another process is killed right after a chosen request to the store."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cdc_lake_tests.faults.jobs.job_process import JobProcess
from cdc_lake_tests.helpers.s3_fault_proxy import Fault, FaultProxy, LoseAnswer, Request
from cdc_lake_tests.integration.jobs.change_records import event
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

Rows = dict[object, tuple[object, object]]
"""Note and deletion of each row by id."""


@dataclass(frozen=True)
class Place:
    """A request of a job: its method and the end of its path, after a request `since`, if that is not empty."""

    job: str
    method: str
    path: str
    since: str = ""


def deliver(table: LakeTable, number: int) -> None:
    """Deliver a batch: rows 0 to 4 change, row 5 is deleted, and row 100 + `number` is new."""
    changed = [event(key, "u", 100 * (number + 1) + key, note=f"n{number}") for key in range(5)]
    new = event(100 + number, "c", 100 * (number + 1) + 50, note=f"n{number}")
    table.deliver([*changed, event(5, "d", 100 * (number + 1) + 5, note=f"n{number}"), new])


def expected(number: int) -> Rows:
    """Return the rows after this batch."""
    changed: Rows = {key: (f"n{number}", key == 5) for key in range(6)}
    return changed | {100 + each: (f"n{each}", False) for each in range(number + 1)}


def rows(found: list[dict[str, Any]]) -> Rows:
    """Return rows by id; a row that is there twice fails."""
    assert len({row["id"] for row in found}) == len(found), found
    return {row["id"]: (row["note"], row["__deleted"]) for row in found}


@contextmanager
def readers(table: LakeTable, *contents: Rows) -> Iterator[None]:
    """Read the table by Spark again and again during the block; every read must return one of the contents.

    Not by hudi-rs 0.5, which can return a row of a merge-on-read table twice at the moment a clustering is completed.
    """
    ended, faults, reads = threading.Event(), list[str](), 0

    def read() -> None:
        nonlocal reads
        while not ended.is_set():
            try:
                found = rows(table.by_spark())
            except Exception as error:  # noqa: BLE001 - the test fails with it
                faults.append(repr(error))
                return
            reads += 1
            if found not in contents:
                faults.append(f"read {found}")
                return

    thread = threading.Thread(target=read, name="reader")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not faults
    assert reads


def kill_at(place: Place, proxy: FaultProxy, process: JobProcess) -> None:
    """Kill the process right after the store has executed the first request of the place."""
    seen = not place.since

    def rule(request: Request) -> Fault | None:
        nonlocal seen
        if seen and request.method == place.method and re.search(f"{place.path}$", request.path):
            process.kill()
            proxy.rule = lambda _: None
            return LoseAnswer()
        seen = seen or re.search(f"{place.since}$", request.path) is not None
        return None

    proxy.rule = rule


def writes(proxy: FaultProxy) -> str:
    """Return the requests that changed the store, for a place that none of them has met."""
    found = [f"{method} {path}" for method, path, _ in proxy.answered if method in ("PUT", "POST", "DELETE")]
    return "\n".join(["no request met the place:", *found])
