"""Add tables to a running pipeline by Debezium's incremental snapshot, without reading the other tables again.

The addition of a table to an epoch is stored as a join (contract/source/epochs.py).

Each step can be repeated (docs/decisions/0046-add-a-table-without-a-new-epoch.md):

1. Store a join record for the epoch, with the topic's first offsets.
2. Wait until all transactions have ended that were open when the table was published: writes of the table before it
   was published are not streamed.
3. Stop the connector, which does not capture the table yet. The topic asset starts it with the new configuration.
4. Send a signal for the table, and wait until the connector notifies that it has read the table.
5. After a barrier, mark the join complete: from then on the table is landed and applied.

The topic asset of any table does steps 1 to 3 for all new tables; the topic asset of a new table does steps 4 and 5.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epoch, Epochs, Join, Joined, Start
from cdc_lake.contract.source.schema_registry import readable
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.connector_config import captured, captures
from cdc_lake.pipeline.operations.epoch_opening import open_epoch
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.registry_location import registry_location
from cdc_lake.pipeline.source_health import schema_capture
from resources.connect.connector_interface import Connectors, PutOutcome
from resources.deployment import Deployment
from resources.kafka.resource import Kafka
from resources.waiting import until

_READ = ("SUCCEEDED", "EMPTY")
_SCAN_COMPLETED = ("Incremental Snapshot", "TABLE_SCAN_COMPLETED")


def incomplete_tables(pipeline: Pipeline, epoch: Epoch) -> list[PipelineTable]:
    """Return the tables of the pipeline whose rows are not completely in Kafka, in the order of the YAML."""
    return [table for table in pipeline.tables if not epoch.contains(table.topic)]


def put_connector(pipeline: Pipeline, connect: Connectors, config: Mapping[str, str], store: ObjectStore) -> PutOutcome:
    """Start the connector with this configuration; first store which tables it captures, in case it is deleted."""
    stage_state.write(store, _captured_key(pipeline), captured(config))
    return connect.put(pipeline.connector, config)


def last_config(
    pipeline: Pipeline, connect: Connectors, store: ObjectStore, desired: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return the connector's configuration; of a deleted connector, `desired` with the tables that it captured.

    None if these are not known: the connector never ran, or ran before they were stored.
    """
    found = connect.get(pipeline.connector)
    stored = stage_state.read(store, _captured_key(pipeline))
    return found or ({**desired, **stored} if stored else None)


def _captured_key(pipeline: Pipeline) -> str:
    return object_names.stage_state_key(pipeline.name, "connector", "captured")


def require_captured(pipeline: Pipeline, kafka: Kafka, config: Mapping[str, str] | None, epoch: Epoch) -> None:
    """Raise ContractError if the connector skipped changes of a table that was missing in the YAML for a while.

    `config` is the result of last_config(). A join that was interrupted before the connector captured the table can be
    continued: the topic has no records after its first offsets.
    """
    skipped = [
        table.name
        for table in pipeline.tables
        if config is not None
        and table.topic in epoch.starts
        and not captures(config, table)
        and not (
            table.topic in epoch.joining and kafka.written_offsets(table.topic) == epoch.starts[table.topic].offsets
        )
    ]
    if skipped:
        raise ContractError(
            f"Cannot start connector {pipeline.connector}: it does not capture {', '.join(skipped)}, which pipeline "
            f"{pipeline.name} had before, so that changes are lost. Run `cdc-lake resnapshot {pipeline.name}`, which "
            "reads all tables again."
        )


def begin(
    pipeline: Pipeline,
    postgres: SourcePostgres,
    kafka: Kafka,
    connect: Connectors,
    store: ObjectStore,
    epoch: Epoch,
    desired: Mapping[str, str],
    deployment: Deployment,
) -> Epoch:
    """Do steps 1 to 3 for the tables that are new to the epoch, whose topics exist; return the epoch with its joins.

    `desired` is the connector's new configuration, for the signal and notification topics that are created.
    Raises ContractError if a table needs a resnapshot, WaitTimedOut if a transaction stays open, and what the
    connector and the barrier raise.
    """
    epochs = Epochs(store, pipeline.name)
    for table in incomplete_tables(pipeline, epoch):
        if table.topic not in epoch.starts:
            for topic in (pipeline.signal_topic, pipeline.notification_topic):
                kafka.ensure_topic(topic, pipeline.spec.stream.partitions, pipeline.topic_settings(desired))
            _require_new(table, postgres, kafka, epochs, epoch)
            epochs.join(epoch.number, table.name, _join(table, kafka))
    failpoints.reached("join.after_record")
    epoch = epochs.read(epoch.number)
    tables = incomplete_tables(pipeline, epoch)
    config = last_config(pipeline, connect, store, desired)
    if config is None or all(captures(config, table) for table in tables):
        return epoch
    names = ", ".join(table.name for table in tables)
    xid = postgres.new_xid()
    until(
        postgres.oldest_open_xid,
        lambda oldest: oldest >= xid,
        seconds=deployment.snapshot_seconds,
        what=f"all transactions before {xid} to end, which may have changed {names} before it was published",
        hint="End the oldest one (pg_stat_activity, pg_prepared_xacts), then materialise the topic again.",
        pause_seconds=deployment.poll_seconds,
    )
    # After such a transaction, PostgreSQL before 16.9, 15.13 and 14.18 treats the table as unpublished until the client
    # reconnects. The connector therefore has to read past these transactions before it is restarted.
    connect.put(pipeline.connector, config)  # an earlier attempt may have stopped it
    table_progress.barrier_while_running(
        postgres, kafka, connect, pipeline, deployment.snapshot_seconds, deployment.poll_seconds
    )
    # A task that still has the old configuration would ignore the signal.
    connect.ensure_stopped(pipeline.connector, config)
    failpoints.reached("join.after_stop")
    return epoch


def _require_new(table: PipelineTable, postgres: SourcePostgres, kafka: Kafka, epochs: Epochs, epoch: Epoch) -> None:
    """Raise ContractError if an incremental snapshot cannot complete the table in this epoch."""
    pipeline = table.pipeline
    what = f"Cannot add table {table.name} to the running pipeline {pipeline.name}"
    if epochs.completion(epoch.number) is None:
        raise ContractError(
            f"{what}: the pipeline's first snapshot is not complete. Remove the table from the YAML, materialise a"
            f" topic of {pipeline.name}, and add the table again."
        )
    if Chain(epochs.store, pipeline.name, table.topic).head() is not None or any(
        kafka.written_offsets(table.topic).values()
    ):
        raise ContractError(
            f"{what}: topic {table.topic} already has records: the table was in the pipeline before, or another "
            f"program writes the topic. Run `cdc-lake resnapshot {pipeline.name}`, which reads all tables again."
        )
    schema_capture.require_snapshot_safe_dates(table, postgres)
    schema_capture.require_incremental(table, postgres)


def _join(table: PipelineTable, kafka: Kafka) -> Join:
    found = kafka.topic(table.topic)
    if found is None:
        raise ContractError(
            f"Cannot add table {table.name}: topic {table.topic} was deleted right after it was created. Find out "
            "which program deletes it."
        )
    return Join(
        topic=table.topic,
        start=Start(topic_id=found.topic_id, offsets=kafka.written_offsets(table.topic)),
        notifications=kafka.end_offsets(table.pipeline.notification_topic),
        began_at=datetime.now(UTC),
    )


def take_snapshot(
    table: PipelineTable,
    postgres: SourcePostgres,
    kafka: Kafka,
    connect: Connectors,
    join: Join,
    deployment: Deployment,
) -> None:
    """Do step 4: request an incremental snapshot, and wait until the running connector has completed it.

    Raises ContractError if Debezium aborts the snapshot, WaitTimedOut, and what Connectors.wait_running() raises.
    """
    pipeline, scan = table.pipeline, _Scan(table, kafka, dict(join.notifications))
    scan.read()
    known = len(scan.failures)
    if not scan.complete:
        # The id of the signal counts the failed attempts: a new attempt sends a new signal, but a run that is repeated
        # after an interruption does not send the same signal twice.
        postgres.request_snapshot(
            pipeline.spec.source.schema_, pipeline.signal_table, f"{join.attempt}-{known}", table.name
        )
    failpoints.reached("join.after_signal")

    def complete() -> bool:
        connect.wait_running(pipeline.connector)
        scan.read()
        if not scan.complete and len(scan.failures) > known:
            raise ContractError(
                f"Cannot add table {table.name} to pipeline {pipeline.name}: Debezium gave up its incremental snapshot "
                f"({scan.failures[-1]}). Read `cdc-lake logs connect`, fix the cause, and materialise "
                f"{table.asset('topic')} again."
            )
        return scan.complete

    until(
        complete,
        bool,
        seconds=deployment.snapshot_seconds,
        what=f"connector {pipeline.connector} to complete the incremental snapshot of {table.source_table}",
        hint=f"The snapshot continues. Materialise {table.asset('topic')} again to wait for its end.",
        pause_seconds=deployment.poll_seconds,
    )


def complete(table: PipelineTable, store: ObjectStore, epoch: Epoch) -> bool:
    """Do step 5 after the barrier for a table that was added during the epoch; return whether it was still joining."""
    pipeline = table.pipeline
    if table.topic not in epoch.joins:
        return False
    Epochs(store, pipeline.name).complete_join(epoch.number, table.name, Joined(completed_at=datetime.now(UTC)))
    failpoints.reached("join.after_snapshot")
    open_epoch(Chain(store, pipeline.name, table.topic), epoch)
    return table.topic in epoch.joining


@dataclass
class _Scan:
    """Reads the notifications about a table's incremental snapshots, from `offsets` on."""

    table: PipelineTable
    kafka: Kafka
    offsets: dict[int, int]
    complete: bool = False
    failures: list[str] = field(default_factory=list)
    """The status of each attempt that Debezium aborted."""

    def read(self) -> None:
        """Read the notifications that were sent since the last call."""
        for details in self._finished_scans():
            if details["scanned_collection"] == self.table.source_table:
                if details["status"] in _READ:
                    self.complete = True
                else:
                    self.failures.append(details["status"])

    def _finished_scans(self) -> Iterator[Mapping[str, str]]:
        topic = self.table.pipeline.notification_topic
        registry = registry_location(self.kafka, self.table.pipeline)
        for partition, (begin, end) in self.kafka.ranges(topic).items():
            first = max(begin, self.offsets.get(partition, 0))
            messages = self.kafka.peek(topic, partition, first) if first < end else ()
            for message in messages:
                found = json.loads(readable(message.value or b"{}", registry))
                if (found.get("aggregate_type"), found.get("type")) == _SCAN_COMPLETED:
                    yield found["additional_data"]
                self.offsets[partition] = message.offset + 1
            self.offsets[partition] = max(end, self.offsets.get(partition, 0))
