"""The stored progress of checking a pipeline's stream for gaps: newest heartbeat, publication, Connect's offset.

Each pipeline has one such object, which is replaced as the stream advances. If it is lost, no data is lost: the next
check reads the heartbeat topic from the epoch's start, but has no earlier publication or offset to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Heartbeat(_Frozen):
    """A heartbeat that was read from the topic: its counter and its LSN."""

    counter: int = Field(validation_alias=AliasChoices("counter", "beats"))
    lsn: int


class PublicationState(_Frozen):
    """The last known state of a publication: OID, row version (xmin), pg_publication_rel OIDs by table."""

    oid: int
    version: str
    tables: Mapping[str, int]


class StreamProgress(_Frozen):
    """The progress of checking an epoch's stream: the offsets read in the heartbeat topic, and the newest heartbeat.

    Objects that an earlier version stored contain the heartbeat as `beat` and its counter as `beats`.
    """

    epoch: int
    topic_id: str | None = None
    offsets: Mapping[int, int] = Field(default_factory=dict)
    heartbeat: Heartbeat | None = Field(default=None, validation_alias=AliasChoices("heartbeat", "beat"))
    snapshots: tuple[int, ...] = ()
    """The LSN of each attempt at the epoch's snapshot, oldest first."""
    snapshot_ts_ms: int = 0
    """When the newest snapshot was taken, by the source's clock."""
    publication: PublicationState | None = None
    offset: bool = False
    """Whether Connect has stored an offset of the connector before; only then is a missing offset a fault."""
    acknowledged: int | None = 0
    """The LSN up to which Kafka has every record, from the offset that Connect stored; 0 while it is unknown. None with
    exactly-once delivery, where a heartbeat is visible only after all earlier records."""

    def limit(self, epoch: int) -> int | None:
        """Return `acknowledged` for an epoch; 0 if this is the progress of another epoch."""
        return self.acknowledged if self.epoch == epoch else 0


def load(store: ObjectStore, pipeline: str) -> StreamProgress | None:
    """Return the stored progress; None before the first check. Raises ObjectDamagedError."""
    key = object_names.stream_progress_key(pipeline)
    stored = store.get(key)
    try:
        return None if stored is None else StreamProgress.model_validate_json(stored.body)
    except ValidationError as error:
        raise ObjectDamagedError(
            f"Cannot read the stream's progress of pipeline {pipeline}: {key} is damaged: {error.errors()[0]['msg']}. "
            "Delete it: the next run restores it from the topic."
        ) from error


def save(store: ObjectStore, pipeline: str, seen: StreamProgress, before: StreamProgress | None) -> None:
    """Store progress. If another process stored its own since `before` was loaded, keep that: it is equally valid."""
    if seen == before:
        return
    key = object_names.stream_progress_key(pipeline)
    body = seen.model_dump_json(indent=1).encode()
    stored = store.get(key)
    try:
        if stored is None:
            store.put_new(key, body)
        # Compare parsed objects, not bytes: an older version of cdc-lake wrote fewer fields.
        elif before is not None and StreamProgress.model_validate_json(stored.body) == before:
            store.replace(key, body, stored.etag)
    except PreconditionFailedError:
        return  # another process stored its progress in the meantime; the next check continues from there
