"""Recover from a lost stream: begin a new epoch, take its snapshot, and delete the rows that the snapshot lacks.

The result of each step is stored, so that an interrupted resnapshot continues where it stopped:

1. Stop the connector; land the records that can still be landed.
2. Delete Connect's offset and the slot, so that nothing can continue the old stream.
3. Write the next epoch's object, which contains the offsets at which each topic continues.
4. Append a manifest that opens the epoch to each table's chain.
5. Start the connector: it creates the slot with its snapshot; wait for a streamed heartbeat.
6. Land and apply all of that; rows that the snapshot lacks become tombstones.
7. Mark the epoch complete.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import (
    ContractError,
    EpochUnopenedError,
    OffsetsExpiredError,
    SchemaChangeError,
    SnapshotNotAppliedError,
    TopicRecreatedError,
)
from cdc_lake.contract.objects import chain_id, object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.source import stream_progress as sightings
from cdc_lake.contract.source.epochs import Break, Completion, Epoch, Epochs, Start
from cdc_lake.contract.table import lease
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.naming import Flow, TableFlow
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.operations.land_and_apply import RunJob
from cdc_lake.pipeline.source_health import heartbeat_sequence, schema_capture, stream_continuity, topic_state
from cdc_lake.pipeline.spec import HEARTBEAT_TABLE
from resources.connect.connector_interface import Connectors
from resources.kafka.resource import Kafka
from resources.postgres.resource import Postgres


@dataclass(frozen=True)
class Systems:
    """The systems that a resnapshot uses. `run` runs a Spark job; `config` is the connector's configuration."""

    postgres: Postgres
    kafka: Kafka
    connect: Connectors
    location: S3Location
    run: RunJob
    config: Mapping[str, str]
    snapshot_seconds: float
    poll_seconds: float = 1.0
    """The interval at which the connector's state is read while waiting."""
    lease_wait_seconds: float = lease.WAIT_SECONDS
    settle_seconds: float = topic_state.ENDS_WITHIN_SECONDS


def resnapshot(flow: Flow, systems: Systems, reason: str) -> Iterator[str]:
    """Take a new snapshot and repair the lake with it; yield a line for each step.

    Continues an epoch whose snapshot is not in the lake yet. Raises ContractError if the pipeline was never started,
    LeaseHeldError if another resnapshot or a writer does not end, and the resources' errors.
    """
    store = systems.location.store()
    epochs = Epochs(store, flow.name)
    with _resnapshot_lease(store, flow, systems.lease_wait_seconds):
        chains = chain_id.current(store, flow.name)
        current = epochs.current()
        if current is None:
            raise ContractError(
                f"Cannot resnapshot pipeline {flow.name}: it was never started. Materialise its assets."
            )
        if _unfinished(epochs, current):
            epoch = current
            yield f"epoch {epoch.number} ({epoch.reason}) goes on: its snapshot is not in the lake yet"
        else:
            epoch = yield from _next_epoch(flow, systems, epochs, current, reason)
        for table in flow.tables:
            # Any schema change is allowed here, because the snapshot reads every row again.
            schema_capture.look(table, systems.postgres, store, epoch=epoch.number)
            if _open(Chain(store, flow.name, table.topic, chains), epoch):
                yield f"{table.name}: epoch {epoch.number} opened"
        failpoints.reached("resnapshot.after_opening")
        yield from _snapshot(flow, systems, store, epoch)
        swept = yield from _apply(flow, systems, store, epoch)
        epochs.complete(epoch.number, swept)
        yield f"epoch {epoch.number} is complete"


def _unfinished(epochs: Epochs, epoch: Epoch) -> bool:
    return epochs.completion(epoch.number) is None and epochs.broken(epoch.number) is None


@contextmanager
def _resnapshot_lease(store: ObjectStore, flow: Flow, wait_seconds: float) -> Iterator[None]:
    """Hold the pipeline's resnapshot lease."""
    with lease.held(
        store, object_names.resnapshot_lease_key(flow.name), f"resnapshot {uuid.uuid4()}", wait_seconds=wait_seconds
    ):
        yield


def _next_epoch(
    flow: Flow, systems: Systems, epochs: Epochs, current: Epoch, reason: str
) -> Generator[str, None, Epoch]:
    """Steps 1 to 3; returns the epoch."""
    source, store = flow.spec.source, epochs.store
    for table in flow.tables:
        schema_capture.require_tellable(table, systems.postgres)
    systems.connect.halt(flow.connector, systems.config)
    yield f"connector {flow.connector} is stopped"
    for table in flow.tables:  # as the source stage does: the table may have been re-created
        systems.postgres.refuse_truncate(source.schema_, table.name)
        systems.postgres.set_replica_identity(source.schema_, table.name, "full")
    systems.postgres.ensure_heartbeat(source.schema_)
    # Before the slot is created: changes of a table that is not published by then would be lost.
    tables = [(source.schema_, name) for name in (*source.tables, HEARTBEAT_TABLE)]
    change = systems.postgres.ensure_publication(source.publication, tables)
    if change.action != "unchanged":
        yield f"publication {source.publication} {change.action}"
    with ExitStack() as landings:
        claims = {
            table.topic: landings.enter_context(
                lease.held(
                    store,
                    object_names.landing_lease_key(flow.name, table.topic),
                    f"resnapshot {uuid.uuid4()}",
                    wait_seconds=systems.lease_wait_seconds,
                )
            ).claim
            for table in flow.tables
        }
        starts = {}
        for table in flow.tables:
            _ensure_topic(systems, flow, table.topic)
            starts[table.topic], outcome = _land_rest(systems, table, claims[table.topic])
            yield f"{table.name}: {outcome}"
        _ensure_topic(systems, flow, flow.heartbeat_topic)
        starts[flow.heartbeat_topic] = _start(systems, flow.heartbeat_topic)
        failpoints.reached("resnapshot.after_landing")
        systems.connect.delete_offsets(flow.connector)
        if systems.postgres.drop_slot(flow.slot):
            yield f"replication slot {flow.slot} dropped"
        failpoints.reached("resnapshot.after_slot")
        begun = stream_continuity.beginning(flow, systems.postgres, current.number + 1, reason)
        epoch = epochs.begin(begun.model_copy(update={"starts": starts}))
        failpoints.reached("resnapshot.after_epoch")
    yield f"epoch {epoch.number} began: {reason}"
    return epoch


def _ensure_topic(systems: Systems, flow: Flow, topic: str) -> None:
    systems.kafka.ensure_topic(topic, flow.spec.stream.partitions, flow.topic_settings(systems.config))


def _land_rest(systems: Systems, table: TableFlow, claim: lease.Claim) -> tuple[Start, str]:
    """Land the records that the stopped connector left in the topic, if possible.

    Returns where the topic continues in the next epoch, and a phrase about the outcome.
    """
    # Records that an open transaction would still add belong to the previous epoch.
    topic_state.require_settled(systems.kafka, table.topic, systems.settle_seconds)
    found = table_progress.landing(table, systems.kafka, systems.location, claim)
    start = Start(topic_id=found.state.topic_id, offsets=dict(found.state.ends))
    try:
        done = systems.run(land.run, found.spec)
    except (EpochUnopenedError, OffsetsExpiredError, TopicRecreatedError) as error:
        return start.model_copy(
            update={"jump": error.user_message}
        ), f"what was not landed can't be: {error.user_message}"
    except ContractError as error:
        name = table.pipeline.name
        raise type(error)(
            f"{error.user_message} Connector {table.pipeline.connector} is stopped, and nothing else was changed. Run "
            f"`cdc-lake resnapshot {name}` again once this is mended, or materialise {name}/topic to let it go on"
        ) from error
    return start, f"{done.records} records were left to land"


def _start(systems: Systems, topic: str) -> Start:
    ends = topic_state.require_settled(systems.kafka, topic, systems.settle_seconds)
    found = systems.kafka.topic(topic)
    if found is None:
        raise ContractError(f"topic {topic} was deleted during the resnapshot: run the resnapshot again")
    return Start(topic_id=found.topic_id, offsets=dict(ends))


def _open(chain: Chain, epoch: Epoch) -> bool:
    """Do step 4 for one table; return whether the epoch was not opened before."""
    start = epoch.starts.get(chain.topic)
    head = chain.head()
    if start is None or not epoch.number or (head is not None and head.epoch == epoch.number):
        return False  # the first epoch, or opened already
    chain.append(
        Manifest(
            chain=chain.id,
            number=1 if head is None else head.number + 1,
            attempt=str(uuid.uuid4()),
            pipeline=chain.pipeline,
            topic=chain.topic,
            topic_id=start.topic_id,
            epoch=epoch.number,
            opens=epoch.reason if start.jump is None else f"{epoch.reason}; {start.jump}",
            spans=tuple(_opening(head, start, p) for p in sorted(start.offsets)),
            objects=(),
            # The previous watermark is an LSN of the previous epoch, possibly of another server.
            watermark=None,
            committed_at=datetime.now(UTC),
        )
    )
    return True


def _opening(head: Manifest | None, start: Start, partition: int) -> Span:
    """Return the empty span at which an epoch begins in a partition.

    It keeps the last record of the previous manifest if that manifest ends at the same offset.
    """
    at = start.offsets[partition]
    follows = head is not None and head.topic_id == start.topic_id and head.next_offsets().get(partition) == at
    last = head.last_records().get(partition) if head is not None and follows else None
    return Span(partition=partition, first=at, next=at, last=last)


def _snapshot(flow: Flow, systems: Systems, store: ObjectStore, epoch: Epoch) -> Iterator[str]:
    """Do step 5."""
    systems.postgres.beat(flow.spec.source.schema_)  # the snapshot's position is the LSN of the heartbeat that it reads
    # Stores the publication's state before the slot is created; an interrupted resnapshot detects new faults here.
    stream_continuity.require_whole(flow, systems.postgres, systems.kafka, systems.connect, store)
    outcome = systems.connect.put(flow.connector, systems.config)
    yield f"connector {flow.connector} {outcome}; waiting for its snapshot"
    systems.connect.wait_running(flow.connector)
    failpoints.reached("resnapshot.after_connector")
    # Twice, as in verification.py: a transaction is visible in all topics once a later transaction is visible in one.
    for _ in range(2):
        table_progress.barrier(
            systems.postgres,
            systems.kafka,
            systems.connect,
            flow,
            systems.snapshot_seconds,
            since=epoch.starts.get(flow.heartbeat_topic),
            running=lambda: systems.connect.wait_running(flow.connector),
            poll_seconds=systems.poll_seconds,
        )
    stream_continuity.require_whole(flow, systems.postgres, systems.kafka, systems.connect, store)


def _apply(flow: Flow, systems: Systems, store: ObjectStore, epoch: Epoch) -> Generator[str, None, Completion]:
    """Do step 6; return the epoch's completion."""
    seen = sightings.load(store, flow.name)
    told = heartbeat_sequence.follow(systems.kafka, flow, epoch, seen if seen and seen.epoch == epoch.number else None)[
        0
    ]
    if not told.snapshots:
        raise ContractError(
            f"the snapshot of epoch {epoch.number} contains no row of {HEARTBEAT_TABLE}, so that its position is not "
            f"known: run `cdc-lake resnapshot {flow.name}` again"
        )
    lsn, swept = told.snapshots[-1], {}
    for table in flow.tables:
        spec = table.upsert_spec(systems.location, owner=f"resnapshot of epoch {epoch.number}")
        owner = f"resnapshot {uuid.uuid4()}"
        landed = land_and_apply.land(
            table, systems.kafka, systems.location, systems.run, owner, systems.lease_wait_seconds
        )
        at_barrier = _head(store, table, epoch)
        applied = _upsert(systems, store, table, spec, epoch)
        failpoints.reached("resnapshot.before_sweep")
        done = systems.run(sweep.run, sweep.SweepSpec(spec, epoch.number, at_barrier, lsn, told.snapshot_ts_ms))
        failpoints.reached("resnapshot.after_sweep")
        swept[table.name] = done.swept
        yield (
            f"{table.name}: {landed.records} records landed, {applied.keys} keys applied, {done.swept} rows deleted "
            "that are not at the source any more"
        )
    return Completion(snapshot_lsn=lsn, swept=swept, completed_at=datetime.now(UTC))


def _head(store: ObjectStore, table: TableFlow, epoch: Epoch) -> int:
    """Return the number of the chain's newest manifest, up to which the snapshot is landed; it must be of the epoch."""
    head = Chain(store, table.pipeline.name, table.topic).head()
    if head is None or head.epoch != epoch.number:
        state = "is empty" if head is None else f"ends in epoch {head.epoch}"
        raise SnapshotNotAppliedError(
            f"Cannot sweep table {table.name}: epoch {epoch.number} is landed, and its manifest chain {state}. Restore "
            f"the manifests of topic {table.topic}, or start over with `cdc-lake reset {table.pipeline.name}`."
        )
    return head.number


def _upsert(
    systems: Systems, store: ObjectStore, table: TableFlow, spec: upsert.UpsertSpec, epoch: Epoch
) -> upsert.UpsertReport:
    """Apply landed records. Marks the epoch broken if no schema fits its records: another epoch has to begin."""
    try:
        return land_and_apply.apply(table, systems.postgres, spec, systems.run, epoch.number)
    except SchemaChangeError as error:
        Epochs(store, table.pipeline.name).mark_broken(
            epoch.number, Break(faults=(error.user_message,), found_at=datetime.now(UTC))
        )
        raise
