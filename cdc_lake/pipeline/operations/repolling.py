"""Resnapshot of a polled pipeline: begin a new epoch, poll all rows again, and reconcile the deletes.

The result of each step is stored, so that an interrupted resnapshot continues where it stopped:

1. Land the records that can still be landed.
2. Write the next epoch's object, which contains the offsets at which each topic continues.
3. Append to each table's chain a manifest that opens the epoch.
4. Poll each table from the beginning; land and apply its rows.
5. Reconcile each table: rows that the source no longer has become tombstones.
6. Mark the epoch complete.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects import chain_id, object_names
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs
from cdc_lake.contract.table import lease
from cdc_lake.pipeline.operations import land_and_apply, polling, reconciliation, resnapshot_steps
from cdc_lake.pipeline.operations.resnapshot_steps import ResnapshotSystems
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import stream_continuity
from resources.waiting import until


def repoll(pipeline: Pipeline, systems: ResnapshotSystems, reason: str) -> Iterator[str]:
    """Poll all rows again and repair the lake with them; yield a line for each step.

    Continues an epoch that is not complete. Raises ContractError if the pipeline was never started, LeaseHeldError if
    another resnapshot or a writer keeps its lease, and the resources' errors.
    """
    store = systems.location.store()
    epochs = Epochs(store, pipeline.name)
    with resnapshot_steps.resnapshot_lease(store, pipeline, systems.lease_wait_seconds):
        chain = chain_id.current(store, pipeline.name)
        current = resnapshot_steps.started_epoch(epochs)
        if resnapshot_steps.can_continue(pipeline, systems, epochs, current):
            epoch = current
            yield f"continuing epoch {epoch.number} ({epoch.reason}): its rows are not in the lake yet"
        else:
            epoch = yield from _next_epoch(pipeline, systems, epochs, current, reason)
        swept = {}
        with resnapshot_steps.broken_if_lost(epochs, epoch):
            yield from resnapshot_steps.open_chains(pipeline, systems, epoch, chain)
            for table in pipeline.tables:
                swept[table.lake_table] = yield from _repair(table, systems, epoch)
        epochs.complete(epoch.number, Completion(snapshot_lsn=None, swept=swept, completed_at=datetime.now(UTC)))
        yield f"epoch {epoch.number} is complete"


def _next_epoch(
    pipeline: Pipeline, systems: ResnapshotSystems, epochs: Epochs, current: Epoch, reason: str
) -> Generator[str, None, Epoch]:
    """Do steps 1 and 2; return the new epoch."""
    with ExitStack() as leases:
        claims = {}
        for table in pipeline.tables:
            # The poll lease excludes polls too: records that a poll sends now belong to the previous epoch.
            for key in (
                object_names.poll_lease_key(pipeline.name, table.name),
                object_names.landing_lease_key(pipeline.name, table.topic),
            ):
                held = lease.held(
                    epochs.store, key, f"resnapshot {uuid.uuid4()}", wait_seconds=systems.lease_wait_seconds
                )
                claims[table.topic] = leases.enter_context(held).claim
        starts = {}
        for table in pipeline.tables:
            polling.ensure_topic(table, systems.kafka)
            starts[table.topic], outcome = resnapshot_steps.land_remaining(systems, table, claims[table.topic])
            yield f"{table.name}: {outcome}"
        failpoints.reached("resnapshot.after_landing")
        new = stream_continuity.new_epoch(pipeline, systems.postgres, current.number + 1, reason)
        epoch = epochs.begin(new.model_copy(update={"starts": starts}))
        failpoints.reached("resnapshot.after_epoch")
    yield f"epoch {epoch.number} began: {reason}"
    return epoch


def _repair(table: PipelineTable, systems: ResnapshotSystems, epoch: Epoch) -> Generator[str, None, int]:
    """Do steps 4 and 5 for a table; return the number of deletes."""
    owner = f"resnapshot {uuid.uuid4()}"
    polled = polling.PollSystems(
        systems.postgres, systems.kafka, systems.location, systems.run, owner, systems.lease_wait_seconds
    )
    result = polling.poll(table, polled)
    yield f"{table.name}: poll {result.poll.number} sent {counted(result.records, 'record')}"
    if result.poll.upper.next_id is not None:
        yield from _poll_by_id(table, systems, polled, result.poll.upper.next_id)
    _apply(table, systems, epoch, owner)
    failpoints.reached("resnapshot.before_sweep")
    deletes = 0
    # Once, because all targets get the deletes from the topic. A Parquet target's view hides the rows of older epochs.
    for each in table.hudi_targets[:1]:
        report = reconciliation.reconcile(each, polled).report
        deletes = 0 if report is None else report.deletes
    _apply(table, systems, epoch, owner)
    failpoints.reached("resnapshot.after_sweep")
    yield f"{table.name}: {counted(deletes, 'row')} deleted that the source does not have any more"
    return deletes


def _poll_by_id(
    table: PipelineTable, systems: ResnapshotSystems, polled: polling.PollSystems, last_id: int
) -> Iterator[str]:
    """Poll until rows up to this id were sent: the first poll of an epoch only reads how far the next one may go."""
    found = until(
        lambda: polling.poll(table, polled),
        lambda each: (each.poll.upper.last_id or 0) >= last_id,
        seconds=systems.snapshot_seconds,
        what=f"the polls of table {table.name} to reach id {last_id}",
        hint=f"Run `cdc-lake resnapshot {table.pipeline.name}` again: it continues.",
        pause_seconds=systems.poll_seconds,
    )
    yield f"{table.name}: poll {found.poll.number} reached id {last_id}"


def _apply(table: PipelineTable, systems: ResnapshotSystems, epoch: Epoch, owner: str) -> None:
    land_and_apply.land(
        table, systems.postgres, systems.kafka, systems.location, systems.run, owner, systems.lease_wait_seconds
    )
    for each in table.hudi_targets:
        spec = each.upsert_spec(systems.location, owner=f"resnapshot of epoch {epoch.number}")
        resnapshot_steps.upsert(systems, each, spec, epoch)
