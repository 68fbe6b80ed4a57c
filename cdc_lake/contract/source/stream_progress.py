"""The progress of checking a pipeline's stream for gaps: newest heartbeat, publication, Connect's offset.

Each pipeline has one such object, which is replaced as the stream advances. Losing it loses no data, only the proof.
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
    """A heartbeat that was streamed: its counter and its LSN."""

    counter: int = Field(validation_alias=AliasChoices("counter", "beats"))
    lsn: int


class PublicationState(_Frozen):
    """The last known state of a publication: OID, row version (xmin), pg_publication_rel OIDs by table."""

    oid: int
    version: str
    tables: Mapping[str, int]


class StreamProgress(_Frozen):
    """The progress of checking an epoch's stream: the offsets read in the heartbeat topic, and the newest heartbeat.

    Progress that an earlier version stored calls the heartbeat `beat` and its counter `beats`.
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
    """Whether Connect had stored an offset of the connector: only then is a missing offset a fault."""
    acknowledged: int | None = 0
    """Without exactly-once: the LSN up to which Kafka has every record, by Connect's stored offset; 0 while that is not
    known. With exactly-once: None, because a visible heartbeat proves it."""

    def limit(self, epoch: int) -> int | None:
        """Return `acknowledged` in an epoch: 0 if this is the progress of another one."""
        return self.acknowledged if self.epoch == epoch else 0


def load(store: ObjectStore, pipeline: str) -> StreamProgress | None:
    """Return the stored progress, or None. Raises ObjectDamagedError."""
    key = object_names.continuity_key(pipeline)
    stored = store.get(key)
    try:
        return None if stored is None else StreamProgress.model_validate_json(stored.body)
    except ValidationError as error:
        raise ObjectDamagedError(
            f"Cannot read the stream's progress of pipeline {pipeline}: {key} is damaged: {error.errors()[0]['msg']}. "
            "Delete it: the next run restores it from the topic."
        ) from error


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
