"""Failpoints: named places in the code where a test can kill, pause or fail the process.

`reached("land.before_manifest")` does nothing unless CDC_LAKE_FAILPOINTS names that place:
`land.before_manifest=kill`. Commas separate several entries. `=kill@3` acts the third time that a process reaches the
place; each process counts separately. Spark's Python workers inherit the variable.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

VARIABLE = "CDC_LAKE_FAILPOINTS"

REGISTRY: Mapping[str, str] = {
    "source.before_schema": "the source stage has begun; the schema is not captured, and the table is not changed",
    "source.after_schema": "the schema is captured; replica identity, heartbeat and publication are not set",
    "topic.before_connector": "the topics exist; the connector is not configured",
    "topic.after_connector": "the connector is configured; its snapshot is not awaited",
    "join.after_record": "new tables are recorded next to the epoch; the connector does not capture them",
    "join.after_stop": "the connector is stopped; it does not capture the new tables yet",
    "join.after_signal": "the signal for a new table's snapshot is sent; the snapshot's end is not awaited",
    "join.after_snapshot": "Kafka has a new table's rows; no manifest opens the epoch for it",
    "poll.after_begin": "a poll is stored as begun; no row is read",
    "poll.before_records": "a poll's query is planned; no record is sent",
    "poll.after_records": "Kafka has acknowledged a poll's records; the poll is not complete",
    "poll.after_complete": "a poll is complete; the materialisation is not reported",
    "reconcile.before_deletes": "a reconciliation has read both sides; no delete is sent",
    "reconcile.after_deletes": "Kafka has acknowledged the deletes of a reconciliation; it is not complete",
    "land.before_object": "on an executor: a raw object is complete but not put",
    "land.after_object": "on an executor: a raw object is put; no manifest lists it",
    "land.before_dead_letters": "the raw objects are put; the batch's dead letters are not",
    "land.before_manifest": "objects and dead letters are put; the manifest that commits them is not",
    "land.after_manifest": "the manifest is put; the run has not reported it",
    "upsert.after_lease": "the writer holds the table's lease but has not read anything",
    "recover.before_rollback": "an incomplete commit is found; it is neither checked again nor rolled back",
    "upsert.before_dead_letters": "the batch is folded; its dead letters are not put",
    "upsert.before_write": "the dead letters are put; Hudi has not started to write",
    "upsert.after_commit": "Hudi's commit is complete; the lease is still held and nothing is reported",
    "replay.before_write": "dead letters are folded; Hudi has not started to write them",
    "replay.after_commit": "a completed commit has applied the dead letters; none of them is closed",
    "commit.before_lease_check": "Hudi has written a commit's files; the last check of the lease has not run",
    "commit.after_lease_check": "the last check of the lease has passed; Hudi has not completed the commit",
    "lake.before_catalog": "the table's files are written; the catalog has an older state of the table",
    "lake.before_view": "the table is in the catalog; the view for readers is not created",
    "lake.after_catalog": "table and view are in the catalog; the materialisation is not reported",
    "dataset.before_view": "the dataset's view is not created",
    "dataset.after_view": "the dataset's view is created; the materialisation is not reported",
    "refined.before_group": "a refined table's rows are staged, but a group of its partitions is not written",
    "refined.before_view": "a build of a refined table is written; the view shows the previous one",
    "refined.after_view": "the view shows a new build of a refined table, which is not stored as the current one",
    "dashboard.before_page": "the page is rendered but not written",
    "resnapshot.after_landing": "the connector is stopped and its last records are landed; its offset and slot exist",
    "resnapshot.after_slot": "offset and slot are deleted; the next epoch has not begun",
    "resnapshot.after_epoch": "the epoch has begun; no manifest opens it",
    "resnapshot.after_opening": "manifests open the epoch in each chain; the connector is stopped",
    "resnapshot.after_connector": "the connector runs; its snapshot is not complete",
    "resnapshot.before_sweep": "a table has the snapshot's rows, but also the rows that the snapshot lacks",
    "resnapshot.after_sweep": "a table's sweep is committed; the epoch is not complete",
    "reset.after_connector": "the connector and its offsets are deleted; its slot is not",
    "reset.after_slot": "the replication slot is deleted; the topics are not",
    "reset.after_topics": "the topics are deleted; the catalog still has the tables",
    "reset.after_catalog": "the catalog's entries are deleted; the lake's files are not",
    "reset.after_objects": "the objects below one prefix (the lake's, then raw, then dead letters) are deleted",
}
"""All failpoints by name. Each description states what is done, and what is not, when a process reaches it."""


class Action(StrEnum):
    """The effect on the process: SIGKILL, SIGSTOP (until SIGCONT), or an exception."""

    KILL = "kill"
    PAUSE = "pause"
    RAISE = "raise"


class FailpointReached(Exception):  # noqa: N818 - not an error of the product
    """Raised at a failpoint whose action is `raise`."""


@dataclass(frozen=True)
class Armed:
    """The action of a failpoint, and the number of the pass (from 1) at which it is executed."""

    action: Action
    at_pass: int


_passes: Counter[str] = Counter()
_lock = threading.Lock()


def reached(name: str) -> None:
    """Act if CDC_LAKE_FAILPOINTS names this failpoint; otherwise do nothing.

    Raises FailpointReached for the action `raise`, ValueError if CDC_LAKE_FAILPOINTS is not valid.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return
    armed = parse(text).get(name)
    if armed is None:
        return
    with _lock:
        _passes[name] += 1
        acts = _passes[name] == armed.at_pass
    if acts:
        _act(name, armed.action)


@lru_cache
def parse(text: str) -> Mapping[str, Armed]:
    """Parse a value of CDC_LAKE_FAILPOINTS. Raises ValueError that names the wrong part."""
    return dict(_parse_part(part.strip()) for part in text.split(",") if part.strip())


def _parse_part(part: str) -> tuple[str, Armed]:
    name, equals, rest = part.partition("=")
    action, at, count = rest.partition("@")
    if name not in REGISTRY:
        raise ValueError(f"Cannot read {VARIABLE}: there is no failpoint {name!r}. Use one of {', '.join(REGISTRY)}.")
    if not equals or action not in set(Action) or (at and not (count.isdecimal() and int(count) > 0)):
        raise ValueError(
            f"Cannot read {VARIABLE}: {part!r} is not NAME=kill, NAME=pause or NAME=raise. Add @N to act at the N-th "
            "pass only."
        )
    return name, Armed(Action(action), int(count) if at else 1)


def _act(name: str, action: Action) -> None:
    match action:
        case Action.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case Action.PAUSE:
            # A signal to the process may stop another thread first, while this one continues.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        case Action.RAISE:
            raise FailpointReached(f"{name}: {REGISTRY[name]}")
