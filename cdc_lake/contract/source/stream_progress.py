"""How far a pipeline's stream was checked to be complete: the newest heartbeat, the publication, Connect's offset.

Each pipeline has one such object, which is replaced as the stream advances. Losing it loses no data, only the proof.
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
    """A heartbeat that was streamed: its counter and its LSN."""

    beats: int
    lsn: int


class PublicationState(_Frozen):
    """The last known state of a publication: OID, row version (xmin), pg_publication_rel OIDs by table."""

    oid: int
    version: str
    tables: Mapping[str, int]


class StreamProgress(_Frozen):
    """How far an epoch's stream was checked: the offsets read in the heartbeats' topic, and the newest heartbeat."""

    epoch: int
    topic_id: str | None = None
    offsets: Mapping[int, int] = Field(default_factory=dict)
    beat: Heartbeat | None = None
    snapshots: tuple[int, ...] = ()
    """The LSN of each attempt at the epoch's snapshot, oldest first."""
    snapshot_ts_ms: int = 0
    """When the newest snapshot was taken, by the source's clock."""
    publication: PublicationState | None = None
    offset: bool = False
    """Whether Connect had stored an offset of the connector: only then is a missing offset a fault."""
    acknowledged: int | None = None
    """Without exactly-once: the LSN up to which Kafka has every record, by Connect's stored offset; 0 before the first
    offset. With exactly-once: None, because a visible heartbeat proves it."""


def load(store: ObjectStore, pipeline: str) -> StreamProgress | None:
    """Return the stored progress, None if there is none. Raises ObjectDamagedError."""
    key = object_names.continuity_key(pipeline)
    stored = store.get(key)
    try:
        return None if stored is None else StreamProgress.model_validate_json(stored.body)
    except ValidationError as error:
        raise ObjectDamagedError(
            f"{key} is damaged: {error.errors()[0]['msg']}; delete it: what it proved is proved anew from the topic"
        ) from error


def acknowledged(store: ObjectStore, pipeline: str, epoch: int) -> int | None:
    """Return StreamProgress.acknowledged of an epoch, None without stored progress. Raises ObjectDamagedError."""
    seen = load(store, pipeline)
    return None if seen is None or seen.epoch != epoch else seen.acknowledged


def save(store: ObjectStore, pipeline: str, seen: StreamProgress, before: StreamProgress | None) -> None:
    """Store progress unless another process stored its own since `before` was loaded; that is equally valid."""
    if seen == before:
        return
    key = object_names.continuity_key(pipeline)
    body = seen.model_dump_json(indent=1).encode()
    stored = store.get(key)
    try:
        if stored is None:
            store.put_new(key, body)
        # Parsed, because an older version of cdc-lake wrote fewer fields.
        elif before is not None and StreamProgress.model_validate_json(stored.body) == before:
            store.replace(key, body, stored.etag)
    except PreconditionFailedError:
        return  # another process stored its progress in the meantime; the next check continues from there
