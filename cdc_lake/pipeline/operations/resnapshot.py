"""Recover from a lost stream: begin a new epoch, take its snapshot, and delete the rows that the snapshot lacks.

The result of each step is stored, so that an interrupted resnapshot continues where it stopped:

1. Stop the connector; land the records that can still be landed.
2. Delete Connect's offset and the slot, so that nothing can continue the old stream.
3. Write the next epoch's object, which contains the offsets at which each topic continues.
4. Append to each table's chain a manifest that opens the epoch.
5. Start the connector: it creates the slot with its snapshot; wait for a streamed heartbeat.
6. Land and apply these records; rows that the snapshot lacks become tombstones.
7. Mark the epoch complete.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import (
    ContractError,
    SnapshotNotAppliedError,
    reset_advice,
)
from cdc_lake.contract.objects import chain_id, object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.source import stream_progress
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs
from cdc_lake.contract.table import lease
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.operations import land_and_apply, resnapshot_steps, table_additions
from cdc_lake.pipeline.operations.resnapshot_steps import ResnapshotSystems
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import (
    heartbeat_sequence,
    schema_capture,
    stream_continuity,
)
from cdc_lake.pipeline.source_health.omitted_columns import replica_identity
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT


def resnapshot(pipeline: Pipeline, systems: ResnapshotSystems, reason: str) -> Iterator[str]:
    """Take a new snapshot and repair the lake with it; yield a line for each step.

    Continues an epoch whose snapshot is not in the lake yet. Raises ContractError if the pipeline was never started,
    LeaseHeldError if another resnapshot or a writer keeps its lease, and the resources' errors.
    """
    store = systems.location.store()
    epochs = Epochs(store, pipeline.name)
    with resnapshot_steps.resnapshot_lease(store, pipeline, systems.lease_wait_seconds):
        chain = chain_id.current(store, pipeline.name)
        current = resnapshot_steps.started_epoch(epochs)
        if resnapshot_steps.can_continue(pipeline, systems, epochs, current):
            epoch = current
            yield f"continuing epoch {epoch.number} ({epoch.reason}): its snapshot is not in the lake yet"
        else:
            epoch = yield from _next_epoch(pipeline, systems, epochs, current, reason)
        with resnapshot_steps.broken_if_lost(epochs, epoch):
            yield from resnapshot_steps.open_chains(pipeline, systems, epoch, chain)
            yield from _snapshot(pipeline, systems, store, epoch)
            swept = yield from _apply(pipeline, systems, store, epoch)
        epochs.complete(epoch.number, swept)
        yield f"epoch {epoch.number} is complete"


def _next_epoch(
    pipeline: Pipeline, systems: ResnapshotSystems, epochs: Epochs, current: Epoch, reason: str
) -> Generator[str, None, Epoch]:
    """Do steps 1 to 3; return the new epoch."""
    source, store = pipeline.spec.source, epochs.store
    for table in pipeline.tables:
        schema_capture.require_snapshot_safe_dates(table, systems.postgres)
    systems.connect.ensure_stopped(pipeline.connector, systems.config)
    yield f"connector {pipeline.connector} is stopped"
    for table in pipeline.tables:  # as the source stage does: the table may have been re-created
        systems.postgres.refuse_truncate(source.schema_, table.name)
        identity = replica_identity(table, systems.postgres)
        systems.postgres.set_replica_identity(source.schema_, table.name, identity)
    systems.postgres.ensure_internal_table(source.schema_, HEARTBEAT)
    # Published before the slot is created: changes between the slot and a later publication would be lost.
    tables = [(source.schema_, name) for name in (*source.tables, HEARTBEAT_TABLE)]
    change = systems.postgres.ensure_publication(source.publication, tables)
    if change.action != "unchanged":
        yield f"publication {source.publication} {change.action}"
    with ExitStack() as landings:
        claims = {
            table.topic: landings.enter_context(
                lease.held(
                    store,
                    object_names.landing_lease_key(pipeline.name, table.topic),
                    f"resnapshot {uuid.uuid4()}",
                    wait_seconds=systems.lease_wait_seconds,
                )
            ).claim
            for table in pipeline.tables
        }
        starts = {}
        for table in pipeline.tables:
            _ensure_topic(systems, pipeline, table.topic)
            starts[table.topic], outcome = resnapshot_steps.land_remaining(systems, table, claims[table.topic])
            yield f"{table.name}: {outcome}"
        _ensure_topic(systems, pipeline, pipeline.heartbeat_topic)
        starts[pipeline.heartbeat_topic] = resnapshot_steps.continued_at(systems, pipeline.heartbeat_topic)
        failpoints.reached("resnapshot.after_landing")
        systems.connect.delete_offsets(pipeline.connector)
        if systems.postgres.drop_slot(pipeline.slot):
            yield f"replication slot {pipeline.slot} dropped"
        failpoints.reached("resnapshot.after_slot")
        new = stream_continuity.new_epoch(pipeline, systems.postgres, current.number + 1, reason)
        epoch = epochs.begin(new.model_copy(update={"starts": starts}))
        failpoints.reached("resnapshot.after_epoch")
    yield f"epoch {epoch.number} began: {reason}"
    return epoch


def _ensure_topic(systems: ResnapshotSystems, pipeline: Pipeline, topic: str) -> None:
    """Create a topic of the pipeline if it is missing."""
    systems.kafka.ensure_topic(topic, pipeline.spec.stream.partitions, pipeline.topic_settings(systems.config))


def _snapshot(pipeline: Pipeline, systems: ResnapshotSystems, store: ObjectStore, epoch: Epoch) -> Iterator[str]:
    """Do step 5."""
    # The snapshot's position is the LSN of the heartbeat that it reads.
    systems.postgres.write_heartbeat(pipeline.spec.source.schema_)
    # Stores the publication's state before the slot is created. In a continued resnapshot, detects new faults.
    stream_continuity.require_no_faults(pipeline, systems.postgres, systems.kafka, systems.connect, store)
    outcome = table_additions.put_connector(pipeline, systems.connect, systems.config, store)
    yield f"connector {pipeline.connector} {outcome}; waiting for its snapshot"
    systems.connect.wait_running(pipeline.connector)
    failpoints.reached("resnapshot.after_connector")
    # Twice, as in verification.py: a transaction is visible in all topics once a later one is visible in any topic.
    for _ in range(2):
        table_progress.barrier_while_running(
            systems.postgres,
            systems.kafka,
            systems.connect,
            pipeline,
            systems.snapshot_seconds,
            systems.poll_seconds,
            since=epoch.starts.get(pipeline.heartbeat_topic),
        )
    stream_continuity.require_no_faults(pipeline, systems.postgres, systems.kafka, systems.connect, store)


def _apply(
    pipeline: Pipeline, systems: ResnapshotSystems, store: ObjectStore, epoch: Epoch
) -> Generator[str, None, Completion]:
    """Do step 6; return the epoch's completion."""
    progress, _ = heartbeat_sequence.read_new(
        systems.kafka, pipeline, epoch, stream_progress.load(store, pipeline.name)
    )
    if not progress.snapshots:
        raise ContractError(
            f"Cannot sweep the tables of pipeline {pipeline.name}: the snapshot of epoch {epoch.number} contains no "
            f"row of {HEARTBEAT_TABLE}, so that its position is not known. Run `cdc-lake resnapshot {pipeline.name}` "
            "again."
        )
    lsn, swept = progress.snapshots[-1], {}
    for table in pipeline.tables:
        owner = f"resnapshot {uuid.uuid4()}"
        landing = partial(
            land_and_apply.land,
            *(table, systems.postgres, systems.kafka, systems.location, systems.run, owner),
            systems.lease_wait_seconds,
        )
        records = land_and_apply.land_all(table, landing, systems.snapshot_seconds)
        at_barrier = _head(store, table, epoch)
        yield f"{table.name}: {counted(records, 'record')} landed"
        for each in table.hudi_targets:
            spec = each.upsert_spec(systems.location, owner=f"resnapshot of epoch {epoch.number}")
            applied = resnapshot_steps.upsert(systems, each, spec, epoch)
            failpoints.reached("resnapshot.before_sweep")
            done = systems.run(sweep.run, sweep.SweepSpec(spec, epoch.number, at_barrier, lsn, progress.snapshot_ts_ms))
            failpoints.reached("resnapshot.after_sweep")
            swept[each.lake_table] = done.swept
            yield (
                f"{each.lake_table}: {counted(applied, 'key')} applied, {counted(done.swept, 'row')} deleted that "
                "the source does not have any more"
            )
    return Completion(snapshot_lsn=lsn, swept=swept, completed_at=datetime.now(UTC))


def _head(store: ObjectStore, table: PipelineTable, epoch: Epoch) -> int:
    """Return the number of the chain's newest manifest, up to which the snapshot is landed.

    Raises SnapshotNotAppliedError if the manifest does not belong to the epoch.
    """
    head = Chain(store, table.pipeline.name, table.topic).head()
    if head is None or head.epoch != epoch.number:
        state = "is empty" if head is None else f"ends in epoch {head.epoch}"
        raise SnapshotNotAppliedError(
            f"Cannot sweep table {table.name}: the snapshot of epoch {epoch.number} was landed, but the manifest chain "
            f"of topic {table.topic} {state}. Restore the chain's manifests, or "
            f"{reset_advice(table.pipeline.name)}."
        )
    return head.number
