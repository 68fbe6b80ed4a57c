"""Named places in the product's own steps where a test can end, stop or fail the process.

`reached("land.before_manifest")` does nothing unless CDC_LAKE_FAILPOINTS names that place:
`land.before_manifest=kill`, several separated by commas, `=kill@3` for the third time that a process gets there.
The variable travels to Spark's Python workers with the environment; each process counts for itself.
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
    "source.before_schema": "identity, heartbeat and publication are set at the source, its schema is not captured",
    "source.after_schema": "the schema is captured, the materialisation not reported",
    "topic.before_connector": "the topics are there, the connector's configuration is not put",
    "topic.after_connector": "the connector's configuration is put, its snapshot not waited for",
    "land.before_object": "on an executor: a raw object is complete and not put",
    "land.after_object": "on an executor: a raw object is put, no manifest lists it",
    "land.before_dead_letters": "the raw objects are put, the batch's dead letters are not",
    "land.before_manifest": "objects and dead letters are put, the manifest that commits them is not",
    "land.after_manifest": "the manifest is put, the run has not reported it",
    "upsert.after_lease": "the writer holds the table's lease and has read nothing",
    "recover.before_rollback": "a commit that was begun is listed, it is neither looked at again nor rolled back",
    "upsert.before_dead_letters": "the batch is folded, its dead letters are not put",
    "upsert.before_write": "the dead letters are put, Hudi has not begun to write",
    "upsert.after_commit": "Hudi's commit is complete, the lease is still held and nothing is reported",
    "replay.before_write": "dead letters are folded, Hudi has not begun to write them",
    "replay.after_commit": "dead letters are applied by a complete commit, none of them is closed",
    "commit.before_lease_check": "Hudi has written a commit's files, the lease is not asked for the last time",
    "commit.after_lease_check": "the lease is secured for the last time, Hudi has not completed the commit",
    "lake.before_catalog": "the table's files are written, the catalog does not have the table as it is now",
    "lake.before_view": "the table is in the catalog, the view that readers use is not made",
    "lake.after_catalog": "table and view are in the catalog, the materialisation is not reported",
    "dataset.before_view": "the dataset's view is not made",
    "dataset.after_view": "the dataset's view is made, the materialisation is not reported",
    "dashboard.before_page": "the page is rendered and not written",
    "resnapshot.after_landing": "the connector is stopped and what it left is landed; its offset and slot are there",
    "resnapshot.after_slot": "offset and slot are gone, the next epoch has not begun",
    "resnapshot.after_epoch": "the epoch has begun, no manifest opens it",
    "resnapshot.after_opening": "manifests open the epoch in each chain, the connector is stopped",
    "resnapshot.after_connector": "the connector runs, its snapshot is not through",
    "resnapshot.before_sweep": "a table has the snapshot, and still the rows that it left out",
    "resnapshot.after_sweep": "a table's sweep is committed, the epoch is not complete",
    "reset.after_connector": "the connector and its offsets are gone, its slot is not",
    "reset.after_slot": "the replication slot is gone, the topics are not",
    "reset.after_topics": "the topics are gone, the catalog still has the tables",
    "reset.after_catalog": "the catalog's entries are gone, the lake's files are not",
    "reset.after_objects": "the objects below one prefix (the lake's, then raw, then dead letters) are gone",
}
"""Every place by name, with what is done and what is not when a process gets there."""


class Action(StrEnum):
    """What happens to the process: SIGKILL, SIGSTOP (until somebody sends SIGCONT), or an exception."""

    KILL = "kill"
    PAUSE = "pause"
    RAISE = "raise"


class FailpointReached(Exception):  # noqa: N818 - it is what it says, not an error of the product
    """Raised at a place whose action is `raise`."""


@dataclass(frozen=True)
class Armed:
    """What happens at a place, and at which time of getting there (from 1)."""

    action: Action
    time: int


_times: Counter[str] = Counter()
_lock = threading.Lock()


def reached(name: str) -> None:
    """Say that the process got to a place of the registry.

    Raises FailpointReached where that is asked for, ValueError where CDC_LAKE_FAILPOINTS is not valid.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return
    armed = parse(text).get(name)
    if armed is None:
        return
    with _lock:
        _times[name] += 1
        due = _times[name] == armed.time
    if due:
        _act(name, armed.action)


@lru_cache
def parse(text: str) -> Mapping[str, Armed]:
    """What a value of CDC_LAKE_FAILPOINTS says. Raises ValueError that names the part that is wrong."""
    return dict(_parsed(part.strip()) for part in text.split(",") if part.strip())


def _parsed(part: str) -> tuple[str, Armed]:
    name, equals, rest = part.partition("=")
    action, at, time = rest.partition("@")
    if name not in REGISTRY:
        raise ValueError(f"{VARIABLE}: there is no failpoint {name!r}; there are: {', '.join(REGISTRY)}")
    if not equals or action not in set(Action) or (at and not (time.isdecimal() and int(time) > 0)):
        raise ValueError(f"{VARIABLE}: {part!r} is not NAME=kill, NAME=pause or NAME=raise, with @TIMES or without")
    return name, Armed(Action(action), int(time) if at else 1)


def _act(name: str, action: Action) -> None:
    match action:
        case Action.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case Action.PAUSE:
            # To this thread: sent to the process, another thread may take it, and this one goes on meanwhile.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        case Action.RAISE:
            raise FailpointReached(f"{name}: {REGISTRY[name]}")
