"""Detect gaps in the stream from the source.

There are two kinds of checks. Before a connector runs, cluster, publication, slot and Connect's stored offset must
match: a slot that was dropped and re-created is ahead of the stored offset. While it runs, the heartbeats' counter must
increase by one: a heartbeat that is missing in the topic shows that WAL was skipped
(docs/decisions/0011-slot-continuity.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from cdc_lake.contract.errors import ContractError, SourceBrokenError, TableIncompleteError
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Break, Completion, Epoch, Epochs, Start, broken_stream_error
from cdc_lake.contract.source.stream_progress import StreamProgress, load, save
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import heartbeat_sequence, stored_offset, stream_faults
from resources.connect.connector_interface import FAILED, Connectors, ConnectorStatus
from resources.kafka.resource import Kafka


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


def require_empty_topic(pipeline: Pipeline, topic: str, kafka: Kafka) -> None:
    """Raise ContractError if the topic has records before the first snapshot or poll.

    They are from an earlier deployment, and their positions may be higher than those of the new rows.
    """
    if kafka.end_offsets(topic) != kafka.begin_offsets(topic):
        raise ContractError(
            f"Cannot start pipeline {pipeline.name}: topic {topic} has records from an earlier deployment, which would "
            "be applied over the new rows. If no other program needs them, delete the topics of the pipeline, and all "
            f"its data, with `cdc-lake reset {pipeline.name}`; then run this again."
        )


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
    publication, publication_faults = stream_faults.publication_state(pipeline, postgres, previous)
    faults = (
        *stream_faults.server_faults(postgres, epoch, previous, offset),
        *publication_faults,
        *(stream_faults.slot_faults(pipeline, slot) if streaming else ()),
        *(stream_faults.offset_faults(pipeline, previous, offset) if streaming and reported else ()),
        *(stream_faults.slot_ahead_faults(pipeline, slot, offset) if streaming and reported and halted else ()),
        *gaps,
        *stream_faults.topic_faults(kafka, pipeline.heartbeat_topic, epoch),
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
    faults = () if epoch is None else tuple(stream_faults.topic_faults(kafka, table.topic, epoch))
    if faults:
        raise broken_stream_error(table.pipeline.name, new_break(faults))


def require_complete_topic(table: PipelineTable, epoch: Epoch | None) -> None:
    """Raise TableIncompleteError if the table is being added during the epoch, so that its topic lacks rows."""
    if epoch is not None and not epoch.contains(table.topic):
        if table.pipeline.polled:
            raise TableIncompleteError(
                f"Cannot read topic {table.topic} as a whole: table {table.name} was added to pipeline "
                f"{table.pipeline.name} after a resnapshot. Run `cdc-lake resnapshot {table.pipeline.name}`, which "
                "polls all tables again."
            )
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


def require_no_resnapshot(pipeline: Pipeline, epochs: Epochs, epoch: Epoch, what: str) -> None:
    """Raise ContractError if a resnapshot is running or was interrupted; `what` is what must wait, as "start X"."""
    if epoch.number and epochs.completion(epoch.number) is None:
        raise ContractError(
            f"Cannot {what}: the snapshot of epoch {epoch.number} of pipeline {pipeline.name} is not in the lake yet: "
            "a resnapshot is running, or was interrupted. If no resnapshot is running, `cdc-lake resnapshot "
            f"{pipeline.name}` continues it."
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
