"""The generations of a pipeline's source: one epoch for each cluster, slot and snapshot that its stream began with.

An epoch is a few objects, each put once with If-None-Match:

    raw/<pipeline>/_epochs/000001.json            it began: of which cluster, why, and where each topic goes on
    raw/<pipeline>/_epochs/000001.complete.json   its snapshot is in the lake, and what the snapshot left out is gone
    raw/<pipeline>/_epochs/000001.broken.json     its stream can't be continued: what was found
    raw/<pipeline>/_epochs/000000.swept.t.json    rows that only an interrupted snapshot told are gone from table t
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdc_lake.contract.errors import ObjectDamagedError, RaceLostError, SourceBrokenError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.store import ObjectStore

_NUMBER = re.compile(r"/(\d+)\.json$", re.ASCII)
_Kind = TypeVar("_Kind", bound=BaseModel)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Start(_Frozen):
    """Where an epoch begins in one topic: the first offset by partition. `jump` says why what was landed before can't
    be continued up to there, None where it was.
    """

    topic_id: str
    offsets: Mapping[int, int]
    jump: str | None = None


class Epoch(_Frozen):
    """The beginning of an epoch. The first one, 0, begins every topic at its first offset."""

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
    """Where the source's WAL ended."""
    starts: Mapping[str, Start] = Field(default_factory=dict)


class Completion(_Frozen):
    """The end of an epoch's snapshot. Rows of the lake that are older than `snapshot_lsn` were swept: how many, by
    table. None: the pipeline ran before epochs were kept.
    """

    snapshot_lsn: int | None
    swept: Mapping[str, int] = Field(default_factory=dict)
    completed_at: datetime
    retaken_ts_ms: int | None = None
    """When the snapshot was taken, by the source's clock, where an earlier attempt at it had told rows: those that it
    left out are swept by each table's next run of lake."""


class Swept(_Frozen):
    """That a table has no row any more that only an interrupted snapshot told."""

    rows: int
    swept_at: datetime


class Break(_Frozen):
    """Why an epoch's stream can't be continued."""

    faults: tuple[str, ...]
    found_at: datetime


@dataclass(frozen=True)
class Epochs:
    """The epochs 0, 1, … of one pipeline."""

    store: ObjectStore
    pipeline: str

    def current(self) -> Epoch | None:
        """The newest epoch, None where the pipeline has not begun. Raises ObjectDamagedError."""
        keys = (item.key for item in self.store.scan(object_names.epoch_prefix(self.pipeline)))
        numbers = [int(found[1]) for key in keys if (found := _NUMBER.search(key))]
        return self.read(max(numbers)) if numbers else None

    def read(self, number: int) -> Epoch:
        """One epoch. Raises ObjectDamagedError where it is missing or can't be read."""
        found = self._get(Epoch, number)
        if found is None:
            raise ObjectDamagedError(
                f"Cannot read epoch {number} of pipeline {self.pipeline}: "
                f"{object_names.epoch_key(self.pipeline, number)} is missing, though manifests belong to it. "
                f"Restore the object, or run `cdc-lake reset {self.pipeline}`."
            )
        return found

    def begin(self, epoch: Epoch) -> Epoch:
        """Begin an epoch. Raises RaceLostError where another attempt began this number first."""
        self._put(epoch, epoch.number)
        stored = self.read(epoch.number)
        if stored.attempt != epoch.attempt:
            raise RaceLostError(
                f"epoch {epoch.number} of pipeline {self.pipeline} was begun by another run at the same moment: "
                "nothing is lost; run it again"
            )
        return stored

    def completion(self, number: int) -> Completion | None:
        """How an epoch's snapshot ended, None where it has not."""
        return self._get(Completion, number, "complete")

    def complete(self, number: int, completion: Completion) -> None:
        """Say that an epoch's snapshot is in the lake; saying it twice changes nothing."""
        self._put(completion, number, "complete")

    def swept(self, number: int, table: str) -> Swept | None:
        """What was swept of a table after its epoch was complete, None where nothing was or had to be."""
        return self._get(Swept, number, f"swept.{table}")

    def mark_swept(self, number: int, table: str, done: Swept) -> None:
        """Say that a table was swept; what was said first stays."""
        self._put(done, number, f"swept.{table}")

    def broken(self, number: int) -> Break | None:
        """Why an epoch can't be continued, None where it can."""
        return self._get(Break, number, "broken")

    def mark_broken(self, number: int, found: Break) -> None:
        """Say that an epoch can't be continued; what was said first stays."""
        self._put(found, number, "broken")

    def require_whole(self) -> None:
        """Return where the current epoch's stream is whole as far as is known.

        Raises SourceBrokenError with what was found, and what to do.
        """
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
            raise ObjectDamagedError(
                f"{key} is damaged: {error.errors()[0]['msg']}; restore the object, or `cdc-lake reset {self.pipeline}`"
            ) from error

    def _put(self, what: BaseModel, number: int, part: str = "") -> None:
        put_or_get(
            self.store, object_names.epoch_key(self.pipeline, number, part), what.model_dump_json(indent=1).encode()
        )


def broken_stream_error(pipeline: str, found: Break) -> SourceBrokenError:
    """The error of a stream that can't be continued."""
    return SourceBrokenError(
        f"the stream of pipeline {pipeline} can't be continued without loss: {'; '.join(found.faults)}. Nothing was "
        f"changed; `cdc-lake resnapshot {pipeline}` takes a new snapshot and mends the lake, deletes included"
    )
