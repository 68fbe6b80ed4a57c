"""How far a pipeline's stream was seen to be whole: the newest beat, the publication, and Connect's stored offset.

One object per pipeline, replaced as the stream goes on; losing it loses no data, only what it proves.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Heartbeat(_Frozen):
    """A heartbeat that was streamed: the counter's value, and where it is in the WAL."""

    beats: int
    lsn: int


class PublicationState(_Frozen):
    """A publication as it was last seen: its numbers in the catalog."""

    oid: int
    version: str
    tables: Mapping[str, int]


class StreamProgress(_Frozen):
    """What was seen of an epoch's stream: up to which offsets of the heartbeats' topic, and what it ended with."""

    epoch: int
    topic_id: str | None = None
    offsets: Mapping[int, int] = Field(default_factory=dict)
    beat: Heartbeat | None = None
    snapshots: tuple[int, ...] = ()
    """The LSN of each attempt at the epoch's snapshot, oldest first."""
    snapshot_ts_ms: int = 0
    """When the newest of them was taken, by the source's clock."""
    publication: PublicationState | None = None
    offset: bool = False
    """Whether Connect had stored an offset of the connector: only then can it lose one."""
    acknowledged: int | None = None
    """Without exactly-once: the LSN up to which Connect has stored that Kafka has every record, 0 before the first
    one. With exactly-once: None, a heartbeat that shows proves it."""


def load(store: ObjectStore, pipeline: str) -> StreamProgress | None:
    """What was seen last, None where nothing was. Raises ObjectDamagedError."""
    key = object_names.continuity_key(pipeline)
    stored = store.get(key)
    try:
        return None if stored is None else StreamProgress.model_validate_json(stored.body)
    except ValidationError as error:
        raise ObjectDamagedError(
            f"{key} is damaged: {error.errors()[0]['msg']}; delete it: what it proved is proved anew from the topic"
        ) from error


def acknowledged(store: ObjectStore, pipeline: str, epoch: int) -> int | None:
    """Return Seen.acknowledged of an epoch, None where nothing was seen of it. Raises ObjectDamagedError."""
    seen = load(store, pipeline)
    return None if seen is None or seen.epoch != epoch else seen.acknowledged


def save(store: ObjectStore, pipeline: str, seen: StreamProgress, before: StreamProgress | None) -> None:
    """Keep what was seen, where nobody has kept anything since `before` was loaded; what others saw is as good."""
    if seen == before:
        return
    key = object_names.continuity_key(pipeline)
    body = seen.model_dump_json(indent=1).encode()
    stored = store.get(key)
    try:
        if stored is None:
            store.put_new(key, body)
        # Not by its bytes: an older version wrote fewer fields.
        elif before is not None and StreamProgress.model_validate_json(stored.body) == before:
            store.replace(key, body, stored.etag)
    except PreconditionFailedError:
        return  # somebody else has kept what they saw in this moment; the next look goes on from there
