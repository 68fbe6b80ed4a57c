"""Faults of the server, publication, slot, offset or topic after which the stream can have lost changes.

Each function compares the present state with the stored one, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdc_lake.contract.source.epochs import Epoch
from cdc_lake.contract.source.stream_progress import PublicationState, StreamProgress
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.source_health import stored_offset
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE
from resources.kafka.resource import Kafka
from resources.postgres import lsn as lsn_text
from resources.postgres.slots import SlotInfo


def topic_faults(kafka: Kafka, topic: str, epoch: Epoch) -> Iterator[str]:
    """Yield a fault if the topic was deleted or re-created since the epoch began: its records are lost.

    A fault of a table's topic makes the stages of that table fail until a resnapshot, and no other stages.
    """
    start, found = epoch.starts.get(topic), kafka.topic(topic)
    if start is not None and found is None:
        yield f"topic {topic} was deleted"
    elif start is not None and found is not None and found.topic_id != start.topic_id:
        yield f"topic {topic} was deleted and re-created (id {start.topic_id}, now {found.topic_id})"


def server_faults(
    postgres: SourcePostgres,
    epoch: Epoch,
    seen: StreamProgress | None = None,
    offset: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """Yield a fault if the server is not the one of the epoch, or lacks commits that were streamed."""
    server = postgres.identity()
    where = f"the server at {postgres.host}:{postgres.port}"
    if server.system_identifier != epoch.system_identifier:
        yield (
            f"{where} is another database cluster (system identifier {server.system_identifier}, before "
            f"{epoch.system_identifier})"
        )
        return
    if server.timeline != epoch.timeline:
        yield (
            f"{where} was restored from a backup or is a promoted replica (timeline {server.timeline}, before "
            f"{epoch.timeline}): it may lack commits that were streamed"
        )
    heartbeat_lsn = 0 if seen is None or seen.heartbeat is None else seen.heartbeat.lsn
    reached = max(heartbeat_lsn, epoch.lsn, stored_offset.highest_lsn(offset))
    if server.timeline == epoch.timeline and server.lsn < reached:
        yield (
            f"{where} was restored to an older state: its WAL ends at {lsn_text.to_text(server.lsn)}, but changes up "
            f"to {lsn_text.to_text(reached)} were streamed"
        )


def publication_state(
    pipeline: Pipeline, postgres: SourcePostgres, seen: StreamProgress | None
) -> tuple[PublicationState | None, tuple[str, ...]]:
    """Return the publication's current state, and its differences from the previous one."""
    source = pipeline.spec.source
    what = f"publication {source.publication} of database {source.database}"
    info, found = postgres.publication(source.publication), postgres.publication_identity(source.publication)
    before = None if seen is None else seen.publication
    if info is None or found is None:
        return None, () if before is None else (f"{what} was dropped",)
    now = PublicationState(oid=found.oid, version=found.version, tables=dict(found.tables))
    own = [f"{source.schema_}.{name}" for name in (*source.tables, HEARTBEAT_TABLE)]
    faults = []
    if before is not None and before.oid != now.oid:
        faults.append(f"{what} was dropped and re-created: changes in between were not published")
    elif before is not None:
        if gone := [name for name in own if name in before.tables and name not in now.tables]:
            faults.append(f"{what} does not publish {', '.join(gone)} any more")
        if readded := [n for n in own if n in before.tables and n in now.tables and before.tables[n] != now.tables[n]]:
            faults.append(f"{what} lacked {', '.join(readded)} for a while: changes in between were not published")
        if before.version != now.version and not info.unpublished:
            faults.append(f"{what} was altered: operations may not have been published for a while")
    if info.unpublished:
        faults.append(f"{what} does not publish every {' and '.join(info.unpublished)}")
    if filtered := [f"{schema}.{table}" for schema, table in info.filtered if f"{schema}.{table}" in own]:
        faults.append(f"{what} has a row filter or a column list on {', '.join(filtered)}")
    return now, tuple(faults)


def slot_faults(pipeline: Pipeline, slot: SlotInfo | None) -> Iterator[str]:
    what = f"replication slot {pipeline.slot}"
    if slot is None:
        yield f"{what} does not exist any more, so that WAL which was not streamed yet may be lost"
    elif slot.invalidation_reason is not None or slot.confirmed_flush_lsn is None:
        yield (
            f"{what} was invalidated by the server ({slot.invalidation_reason or 'unknown'}), most likely because it "
            "retained more WAL than max_slot_wal_keep_size allows"
        )


def offset_faults(
    pipeline: Pipeline, seen: StreamProgress | None, offset: Mapping[str, object] | None
) -> Iterator[str]:
    # Right after the first snapshot there is no offset yet: Connect stores it every offset.flush.interval.ms.
    if offset is None and seen is not None and seen.offset:
        yield (
            f"Kafka Connect has no offset of connector {pipeline.connector} any more: the connector would take a new "
            "snapshot, which does not report rows that were deleted before it"
        )


def slot_ahead_faults(pipeline: Pipeline, slot: SlotInfo | None, offset: Mapping[str, object] | None) -> Iterator[str]:
    """Yield a fault if the slot is ahead of the offset of a connector that does not run.

    While a connector runs without exactly-once, Debezium confirms records to the slot up to one
    offset.flush.interval.ms before Connect stores their offset.
    """
    if offset is not None and slot is not None and (slot.confirmed_flush_lsn or 0) > stored_offset.highest_lsn(offset):
        yield (
            f"replication slot {pipeline.slot} begins at {lsn_text.to_text(slot.confirmed_flush_lsn or 0)}, after the "
            f"offset {lsn_text.to_text(stored_offset.highest_lsn(offset))} of connector {pipeline.connector}: the slot "
            "was dropped and re-created, another program read it, or the worker was killed before it stored the offset "
            "that Debezium had confirmed; changes in between can be lost"
        )
