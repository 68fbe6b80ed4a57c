"""The epochs of a pipeline's source. An epoch is a snapshot and the changes that one slot of one cluster streams.

An epoch consists of a few objects, each put once with If-None-Match:

    raw/<pipeline>/_epochs/000001.json            the epoch began: cluster, reason, and first offset in each topic
    raw/<pipeline>/_epochs/000001.complete.json   its snapshot is in the lake, and rows not in the snapshot are swept
    raw/<pipeline>/_epochs/000001.broken.json     its stream cannot be continued: the faults that were found
    raw/<pipeline>/_epochs/000000.swept.t.json    rows that only an interrupted snapshot had read are swept from t
    raw/<pipeline>/_epochs/000001.joining.t.json  table t was added during the epoch: its first offsets
    raw/<pipeline>/_epochs/000001.joined.t.json   the incremental snapshot of table t is in Kafka
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdc_lake.contract.errors import ObjectDamagedError, RaceLostError, SourceBrokenError, reset_advice
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.store import ObjectStore

_NUMBER = re.compile(r"/(\d+)\.json$", re.ASCII)
_JOINING = re.compile(r"/(\d+)\.joining\.(.+)\.json$", re.ASCII)
_Kind = TypeVar("_Kind", bound=BaseModel)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Start(_Frozen):
    """The first offset of an epoch in one topic, by partition.

    `jump` is the reason why landing has to skip offsets to start here, None if there is no gap.
    """

    topic_id: str
    offsets: Mapping[int, int]
    jump: str | None = None


class Join(_Frozen):
    """A table that was added during an epoch: its first offsets, and those of the notifications about its snapshot."""

    topic: str
    start: Start
    notifications: Mapping[int, int]
    attempt: str = Field(default_factory=lambda: str(uuid.uuid4()))
    began_at: datetime


class Joined(_Frozen):
    """Marks a table as added: Kafka has the rows of its incremental snapshot, and all changes since."""

    completed_at: datetime


class Epoch(_Frozen):
    """The beginning of an epoch. Epoch 0 begins each topic at its first offset.

    Epochs.read() and current() add the epoch's joins, which are stored separately, and their first offsets to `starts`.
    """

    version: int = 1
    number: int
    pipeline: str
    reason: str
    attempt: str = Field(default_factory=lambda: str(uuid.uuid4()))
    began_at: datetime
    system_identifier: str
    timeline: int
    slot: str
    lsn: int
    """The end of the source's WAL when the epoch began."""
    starts: Mapping[str, Start] = Field(default_factory=dict)
    joins: Mapping[str, Join] = Field(default_factory=dict, exclude=True)
    """The tables that were added during the epoch, by topic."""
    joining: frozenset[str] = Field(default=frozenset(), exclude=True)
    """The topics of `joins` without a complete snapshot."""

    def contains(self, topic: str) -> bool:
        """Return whether the topic has all rows of its table: those of a snapshot, and the changes since.

        True for any topic of a pipeline that ran before epochs were stored.
        """
        return not self.starts or (topic in self.starts and topic not in self.joining)


class Completion(_Frozen):
    """The end of an epoch's snapshot.

    `swept` is the number of rows older than `snapshot_lsn` that were swept, by table. `snapshot_lsn` is None for a
    pipeline that ran before epochs were stored.
    """

    snapshot_lsn: int | None
    swept: Mapping[str, int] = Field(default_factory=dict)
    completed_at: datetime
    retaken_ts_ms: int | None = None
    """When the snapshot was taken, by the source's clock. None unless an interrupted attempt had read rows before it.
    The next lake run of each table sweeps the rows of that attempt that the snapshot does not have."""


class Swept(_Frozen):
    """Marks a table as swept: it has no rows that only an interrupted snapshot had read."""

    rows: int
    swept_at: datetime


class Break(_Frozen):
    """The faults that break an epoch's stream."""

    faults: tuple[str, ...]
    found_at: datetime


@dataclass(frozen=True)
class Epochs:
    """The epochs 0, 1, … of one pipeline."""

    store: ObjectStore
    pipeline: str

    def current(self) -> Epoch | None:
        """Return the newest epoch, None before the pipeline's first epoch. Raises ObjectDamagedError."""
        keys = self._keys()
        numbers = [int(found[1]) for key in keys if (found := _NUMBER.search(key))]
        return self._read(max(numbers), keys) if numbers else None

    def read(self, number: int) -> Epoch:
        """Return an epoch. Raises ObjectDamagedError if it is missing or cannot be read."""
        return self._read(number, self._keys())

    def _keys(self) -> list[str]:
        return [item.key for item in self.store.scan(object_names.epoch_prefix(self.pipeline))]

    def _read(self, number: int, keys: Sequence[str]) -> Epoch:
        found = self._get(Epoch, number)
        if found is None:
            raise ObjectDamagedError(
                f"Cannot read epoch {number} of pipeline {self.pipeline}: "
                f"{object_names.epoch_key(self.pipeline, number)} is missing, but there are manifests of this epoch. "
                f"Restore the object, or {reset_advice(self.pipeline)}."
            )
        joins, joining = {}, set()
        for table in (each[2] for key in keys if (each := _JOINING.search(key)) and int(each[1]) == number):
            join = self._get(Join, number, f"joining.{table}")
            if join is None:
                continue  # a reset has deleted it since the listing
            joins[join.topic] = join
            if object_names.epoch_key(self.pipeline, number, f"joined.{table}") not in keys:
                joining.add(join.topic)
        starts = {**found.starts, **{topic: join.start for topic, join in joins.items()}}
        return found.model_copy(update={"starts": starts, "joins": joins, "joining": frozenset(joining)})

    def join(self, number: int, table: str, join: Join) -> None:
        """Record that a table is being added during an epoch; an existing record is kept."""
        self._put(join, number, f"joining.{table}")

    def complete_join(self, number: int, table: str, done: Joined) -> None:
        """Record that the snapshot of an added table is complete; a second call changes nothing."""
        self._put(done, number, f"joined.{table}")

    def begin(self, epoch: Epoch) -> Epoch:
        """Begin an epoch. Raises RaceLostError if another attempt began this number first."""
        self._put(epoch, epoch.number)
        stored = self.read(epoch.number)
        if stored.attempt != epoch.attempt:
            raise RaceLostError(
                f"Cannot begin epoch {epoch.number} of pipeline {self.pipeline}: another run began it at the same "
                "moment. Nothing is lost. Run this again."
            )
        return stored

    def completion(self, number: int) -> Completion | None:
        """Return the end of an epoch's snapshot; None if the snapshot is not complete."""
        return self._get(Completion, number, "complete")

    def complete(self, number: int, completion: Completion) -> None:
        """Record that an epoch's snapshot is in the lake; a second call changes nothing."""
        self._put(completion, number, "complete")

    def swept(self, number: int, table: str) -> Swept | None:
        """Return the sweep of a table after its epoch was complete; None if no sweep was needed or done."""
        return self._get(Swept, number, f"swept.{table}")

    def mark_swept(self, number: int, table: str, done: Swept) -> None:
        """Record that a table was swept; an existing record is kept."""
        self._put(done, number, f"swept.{table}")

    def broken(self, number: int) -> Break | None:
        """Return the faults of an epoch's stream; None if it is not broken."""
        return self._get(Break, number, "broken")

    def mark_broken(self, number: int, found: Break) -> None:
        """Record the faults of an epoch's stream; an existing record is kept."""
        self._put(found, number, "broken")

    def require_whole(self) -> None:
        """Raise SourceBrokenError if the current epoch's stream has known faults."""
        epoch = self.current()
        found = None if epoch is None else self.broken(epoch.number)
        if found is not None:
            raise broken_stream_error(self.pipeline, found)

    def _get(self, kind: type[_Kind], number: int, part: str = "") -> _Kind | None:
        key = object_names.epoch_key(self.pipeline, number, part)
        stored = self.store.get(key)
        try:
            return None if stored is None else kind.model_validate_json(stored.body)
        except ValidationError as error:
            fault = error.errors()[0]
            cause = ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))
            raise ObjectDamagedError(
                f"Cannot read epoch {number} of pipeline {self.pipeline}: {key} is damaged: "
                f"{cause}. Restore the object, or {reset_advice(self.pipeline)}."
            ) from error

    def _put(self, what: BaseModel, number: int, part: str = "") -> None:
        put_or_get(
            self.store, object_names.epoch_key(self.pipeline, number, part), what.model_dump_json(indent=1).encode()
        )


def broken_stream_error(pipeline: str, found: Break) -> SourceBrokenError:
    """Return the error for a stream that cannot be continued."""
    return SourceBrokenError(
        f"Cannot continue the stream of pipeline {pipeline} without loss: {'; '.join(found.faults)}. Nothing was "
        f"changed. `cdc-lake resnapshot {pipeline}` takes a new snapshot and repairs the lake, including deletes."
    )
