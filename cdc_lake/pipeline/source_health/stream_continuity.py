"""Detect gaps in the stream from the source.

There are two kinds of checks. Before a connector runs, cluster, publication, slot and Connect's stored offset must
match: a slot that was dropped and re-created is ahead of the stored offset. While it runs, the heartbeats' counter must
increase by one: a heartbeat that is missing in the topic shows that WAL was skipped
(docs/decisions/0011-slot-continuity.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from cdc_lake.contract.errors import ContractError, SourceBrokenError, TableIncompleteError
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Break, Completion, Epoch, Epochs, Start, broken_stream_error
from cdc_lake.contract.source.stream_progress import PublicationState, StreamProgress, load, save
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import heartbeat_sequence, stored_offset
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE
from resources.connect.connector_interface import FAILED, Connectors, ConnectorStatus
from resources.kafka.resource import Kafka
from resources.postgres import lsn as lsn_text
from resources.postgres.slots import SlotInfo


def begin(
    pipeline: Pipeline,
    postgres: SourcePostgres,
    connect: Connectors,
    store: ObjectStore,
    starts: Mapping[str, Start] | None = None,
) -> Epoch:
    """Return the current epoch; if there is none, begin the first one, with the topics' ids and offsets in `starts`.

    Raises SourceBrokenError if a slot of the pipeline's name exists that the pipeline did not create.
    """
    epochs = Epochs(store, pipeline.name)
    current = epochs.current()
    if current is not None:
        return current
    ran = connect.get(pipeline.connector) is not None
    if not ran and postgres.slot(pipeline.slot) is not None:
        raise SourceBrokenError(
            f"Cannot start pipeline {pipeline.name}: replication slot {pipeline.slot} of database "
            f"{pipeline.spec.source.database} exists already, from another or an earlier deployment, and a snapshot "
            "from this slot could miss or repeat changes. If the slot is not used any more, `cdc-lake reset "
            f"{pipeline.name}` drops it."
        )
    begun = new_epoch(pipeline, postgres, 0, "it ran before epochs were stored" if ran else "the pipeline was started")
    epoch = epochs.begin(begun.model_copy(update={"starts": {} if ran else dict(starts or {})}))
    if ran:
        epochs.complete(0, Completion(snapshot_lsn=None, completed_at=datetime.now(UTC)))
    return epoch


def new_epoch(pipeline: Pipeline, postgres: SourcePostgres, number: int, reason: str) -> Epoch:
    """Return an epoch that describes the source's current state, without `starts`; it is not stored."""
    server = postgres.identity()
    return Epoch(
        number=number,
        pipeline=pipeline.name,
        reason=reason,
        began_at=datetime.now(UTC),
        system_identifier=server.system_identifier,
        timeline=server.timeline,
        slot="" if pipeline.polled else pipeline.slot,
        lsn=server.lsn,
    )


def new_break(faults: Iterable[str]) -> Break:
    """Return the record of faults that are found now; it is not stored."""
    return Break(faults=tuple(faults), found_at=datetime.now(UTC))


def find_faults(
    pipeline: Pipeline, postgres: SourcePostgres, kafka: Kafka, connect: Connectors, store: ObjectStore
) -> tuple[str, ...]:
    """Return the faults of the current epoch's stream; empty without faults, or if the pipeline has not started.

    Faults are stored: the pipeline's stages fail until a resnapshot, and later calls return the same faults.
    """
    epochs = Epochs(store, pipeline.name)
    epoch = epochs.current()
    if epoch is None:
        return ()
    known = epochs.broken(epoch.number)
    if known is not None:
        return known.faults
    seen = load(store, pipeline.name)
    previous = seen if seen is not None and seen.epoch == epoch.number else None
    # Heartbeats are read before the slot: after one was streamed, a slot must exist. The slot is read before Connect's
    # offset, which only advances. The server's position is read last.
    after, gaps = heartbeat_sequence.read_new(kafka, pipeline, epoch, previous)
    streaming = after.heartbeat is not None or epochs.completion(epoch.number) is not None
    # The connector's state is read before the slot: slot and offset are consistent only while no task runs.
    config, halted = connect.get(pipeline.connector), _is_halted(connect.status(pipeline.connector))
    slot = postgres.slot(pipeline.slot)
    reported = connect.reports_offsets(pipeline.connector)
    offset = next(iter(connect.offsets(pipeline.connector)), None) if reported else None
    publication, publication_faults = _publication(pipeline, postgres, previous)
    faults = (
        *server_faults(postgres, epoch, previous, offset),
        *publication_faults,
        *(_slot(pipeline, slot) if streaming else ()),
        *(_offset(pipeline, previous, offset) if streaming and reported else ()),
        *(_slot_against_offset(pipeline, slot, offset) if streaming and reported and halted else ()),
        *gaps,
        *topic_faults(kafka, pipeline.heartbeat_topic, epoch),
    )
    if not faults:
        updates = {
            "publication": publication,
            "offset": after.offset or offset is not None,
            "acknowledged": _acknowledged(previous, config, offset, reported),
        }
        save(store, pipeline.name, after.model_copy(update=updates), seen)
    elif streaming or config is not None:
        epochs.mark_broken(epoch.number, new_break(faults))
    return faults


def store_acknowledged(pipeline: Pipeline, connect: Connectors, store: ObjectStore) -> None:
    """Store the LSN up to which Kafka contains every change; without exactly-once it limits the watermarks.

    find_faults() stores it too.
    """
    epoch, seen = Epochs(store, pipeline.name).current(), load(store, pipeline.name)
    if epoch is not None and seen is not None and seen.epoch == epoch.number:
        acknowledged = stored_offset.acknowledged_lsn(pipeline, connect)
        save(store, pipeline.name, seen.model_copy(update={"acknowledged": acknowledged}), seen)


def require_no_faults(
    pipeline: Pipeline, postgres: SourcePostgres, kafka: Kafka, connect: Connectors, store: ObjectStore
) -> None:
    """Raise SourceBrokenError if find_faults() returns faults."""
    faults = find_faults(pipeline, postgres, kafka, connect, store)
    if faults:
        raise broken_stream_error(pipeline.name, new_break(faults))


def require_topic(table: PipelineTable, kafka: Kafka, store: ObjectStore) -> None:
    """Raise SourceBrokenError if the table's topic is not the one that the current epoch began with."""
    epoch = Epochs(store, table.pipeline.name).current()
    faults = () if epoch is None else tuple(topic_faults(kafka, table.topic, epoch))
    if faults:
        raise broken_stream_error(table.pipeline.name, new_break(faults))


def require_complete_topic(table: PipelineTable, epoch: Epoch | None) -> None:
    """Raise TableIncompleteError if the table is being added during the epoch, so that its topic lacks rows."""
    if epoch is not None and not epoch.contains(table.topic):
        raise TableIncompleteError(
            f"Cannot read topic {table.topic} as a whole: table {table.name} is being added to pipeline "
            f"{table.pipeline.name}, and its snapshot is not complete. Materialise {table.asset('topic')}, which takes "
            "or continues it."
        )


def require_no_gap(pipeline: Pipeline, kafka: Kafka, store: ObjectStore) -> None:
    """Raise SourceBrokenError if a heartbeat is missing in Kafka, or if a fault is stored.

    For stages that do not connect to the source. For a polled pipeline, which has no heartbeats, only checks for stored
    faults.
    """
    epochs = Epochs(store, pipeline.name)
    epoch = epochs.current()
    if epoch is None:
        return
    epochs.require_whole()
    if pipeline.polled:
        return
    seen = load(store, pipeline.name)
    after, gaps = heartbeat_sequence.read_new(kafka, pipeline, epoch, seen)
    if gaps:
        found = new_break(gaps)
        epochs.mark_broken(epoch.number, found)
        raise broken_stream_error(pipeline.name, found)
    save(store, pipeline.name, after, seen)


def require_no_resnapshot(pipeline: Pipeline, epochs: Epochs, epoch: Epoch) -> None:
    """Raise ContractError if a resnapshot is running or was interrupted: only it may start the connector then."""
    if epoch.number and epochs.completion(epoch.number) is None:
        raise ContractError(
            f"Cannot start connector {pipeline.connector}: the snapshot of epoch {epoch.number} of pipeline "
            f"{pipeline.name} is not in the lake yet: a resnapshot is running, or was interrupted. If no resnapshot is "
            f"running, `cdc-lake resnapshot {pipeline.name}` continues it."
        )


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


def _publication(
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


def _slot(pipeline: Pipeline, slot: SlotInfo | None) -> Iterator[str]:
    what = f"replication slot {pipeline.slot}"
    if slot is None:
        yield f"{what} does not exist any more, so that WAL which was not streamed yet may be lost"
    elif slot.invalidation_reason is not None or slot.confirmed_flush_lsn is None:
        yield (
            f"{what} was invalidated by the server ({slot.invalidation_reason or 'unknown'}), most likely because it "
            "retained more WAL than max_slot_wal_keep_size allows"
        )


def _offset(pipeline: Pipeline, seen: StreamProgress | None, offset: Mapping[str, object] | None) -> Iterator[str]:
    # Right after the first snapshot there is no offset yet: Connect stores it every offset.flush.interval.ms.
    if offset is None and seen is not None and seen.offset:
        yield (
            f"Kafka Connect has no offset of connector {pipeline.connector} any more: the connector would take a new "
            "snapshot, which does not report rows that were deleted before it"
        )


def _slot_against_offset(
    pipeline: Pipeline, slot: SlotInfo | None, offset: Mapping[str, object] | None
) -> Iterator[str]:
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


def _is_halted(status: ConnectorStatus | None) -> bool:
    """Return whether no task of the connector is known to run."""
    if status is None:
        return True
    if not status.tasks:
        return status.state in (FAILED, "STOPPED")
    return all(task.state == FAILED for task in status.tasks)


def _acknowledged(
    seen: StreamProgress | None, config: Mapping[str, str] | None, offset: Mapping[str, object] | None, reported: bool
) -> int | None:
    """Return the next StreamProgress.acknowledged; the previous one if the connector or its offset is not known."""
    if config is None or not reported:
        return 0 if seen is None else seen.acknowledged
    return None if stored_offset.is_exactly_once(config) else stored_offset.highest_lsn(offset)
