"""The topic stage: start the connector, and wait until everything that the source has committed is in Kafka."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.sent_columns import sent_columns
from cdc_lake.contract.source import stream_progress
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs, Start
from cdc_lake.contract.table import lease
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.connector_config import connector_config, with_incremental_snapshots
from cdc_lake.pipeline.operations import table_additions
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import heartbeat_sequence, stream_continuity, topic_state
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE
from resources.connect.connector_interface import Connectors
from resources.deployment import Deployment
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres


def build(table: PipelineTable) -> dg.AssetsDefinition:
    """Return the topic asset of a table."""
    pipeline = table.pipeline

    @dg.asset(
        key=table.key("topic"),
        # The connector captures all tables of the pipeline: each must be in the publication before it starts.
        deps=[each.key("source") for each in pipeline.tables],
        description=(
            f"Every committed change of {table.source_table}, in commit order, written by connector "
            f"{pipeline.connector}."
        ),
        kinds={"kafka"},
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=table.tags("topic"),
        op_tags=step_priority.STREAM,
        freshness_policy=pipeline.freshness_policy,
        metadata={"dagster/table_name": table.topic},
    )
    def topic_asset(
        context: dg.AssetExecutionContext,
        postgres: Postgres,
        kafka: Kafka,
        connect: dg.ResourceParam[Connectors],
        store: ObjectStore,
        deployment: Deployment,
    ) -> dg.MaterializeResult[None]:
        source = pipeline.source_postgres(postgres)
        bucket = location(store).store()
        config = connector_config(pipeline, source, deployment)
        starts = _topics(pipeline, kafka, config)
        key, owner = object_names.resnapshot_lease_key(pipeline.name), f"dagster run {context.run.run_id}"
        with lease.held(bucket, key, owner):  # the connector must not be started during a resnapshot
            epoch = _require_startable(pipeline, source, kafka, connect, bucket, config, starts)
            adding = bool(epoch.joins or table_additions.incomplete_tables(pipeline, epoch))
            require_published(pipeline, source, incremental=adding)
            epoch = table_additions.begin(pipeline, source, kafka, connect, bucket, epoch, config, deployment)
            if epoch.joins:
                config = with_incremental_snapshots(pipeline, config)
            failpoints.reached("topic.before_connector")
            outcome = table_additions.put_connector(pipeline, connect, config, bucket)
        failpoints.reached("topic.after_connector")
        context.log.info(f"connector {pipeline.connector}: {outcome}; waiting for its tasks and its snapshot")
        status = connect.wait_running(pipeline.connector)
        if table.topic in epoch.joining:
            context.log.info(
                f"connector {pipeline.connector} reads the new table {table.name}; waiting for the end of its snapshot"
            )
            table_additions.take_snapshot(table, source, kafka, connect, epoch.joins[table.topic], deployment)
        heartbeat = table_progress.barrier_while_running(
            source, kafka, connect, pipeline, deployment.snapshot_seconds, deployment.poll_seconds
        )
        _complete_first_epoch(pipeline, source, kafka, connect, bucket)
        added = table_additions.complete(table, bucket, epoch)
        stream_continuity.require_topic(table, kafka, bucket)
        state = topic_state.current(kafka, table, bucket)
        changes = [
            *([f"connector {pipeline.connector} {outcome}"] if outcome != "unchanged" else []),
            *([f"table {table.name} added to epoch {epoch.number}"] if added else []),
        ]
        slot = source.slot(pipeline.slot)
        captured = captured_schema.latest(bucket, pipeline.name, table.source_table)
        return dg.MaterializeResult(
            metadata={
                **topic_metadata(context.instance, table, kafka, state, captured, changes),
                "connector": f"{pipeline.connector}: {outcome}",
                "tasks_running": len(status.tasks),
                "epoch": epoch.number,
                "retained_wal_bytes": 0 if slot is None else slot.retained_bytes or 0,
                "lag_bytes": max(0, source.current_lsn() - heartbeat.lsn),
                **standard_metadata.watermark(heartbeat),
            }
        )

    return topic_asset


def _topics(pipeline: Pipeline, kafka: Kafka, config: Mapping[str, str]) -> dict[str, Start]:
    """Create the pipeline's missing topics; return the id and first offsets of each topic."""
    starts = {}
    for topic in (*(table.topic for table in pipeline.tables), pipeline.heartbeat_topic):
        kafka.ensure_topic(topic, pipeline.spec.stream.partitions, pipeline.topic_settings(config))
        found = kafka.topic(topic)
        if found is None:
            raise ContractError(
                f"Cannot start the stream of {pipeline.name}: topic {topic} was deleted right after it was created. "
                "Find out which program deletes it."
            )
        starts[topic] = Start(topic_id=found.topic_id, offsets=kafka.begin_offsets(topic))
    return starts


def _require_startable(
    pipeline: Pipeline,
    postgres: SourcePostgres,
    kafka: Kafka,
    connect: Connectors,
    store: Bucket,
    config: Mapping[str, str],
    starts: Mapping[str, Start],
) -> Epoch:
    """Return the current epoch. Raises SourceBrokenError or ContractError if the connector must not be started."""
    epochs = Epochs(store, pipeline.name)
    if epochs.current() is None and connect.get(pipeline.connector) is None:
        for topic in starts:
            stream_continuity.require_empty_topic(pipeline, topic, kafka)
    epoch = stream_continuity.begin(pipeline, postgres, connect, store, starts)
    # Only the resnapshot may start the connector.
    stream_continuity.require_no_resnapshot(pipeline, epochs, epoch, f"start connector {pipeline.connector}")
    last = table_additions.last_config(pipeline, connect, store, config)
    table_additions.require_captured(pipeline, kafka, last, epoch)
    if epochs.completion(epoch.number) is None:
        # The snapshot's position is the LSN of the heartbeat that it reads.
        postgres.write_heartbeat(pipeline.spec.source.schema_)
    elif connect.get(pipeline.connector) is None:
        # The connector was deleted. Its offset can be read only while it exists, so create it without starting it.
        connect.ensure_stopped(pipeline.connector, last or config)
    stream_continuity.require_no_faults(pipeline, postgres, kafka, connect, store)
    return epoch


def _complete_first_epoch(
    pipeline: Pipeline, postgres: SourcePostgres, kafka: Kafka, connect: Connectors, store: Bucket
) -> None:
    """Mark the first epoch complete after its snapshot. Raises SourceBrokenError, ContractError."""
    stream_continuity.require_no_faults(pipeline, postgres, kafka, connect, store)
    epochs = Epochs(store, pipeline.name)
    epoch = stream_continuity.begin(pipeline, postgres, connect, store)
    if epochs.completion(epoch.number) is None:
        # Read the heartbeats again: the stored state may be from before the snapshot's last attempt.
        seen, _ = heartbeat_sequence.read_new(kafka, pipeline, epoch, stream_progress.load(store, pipeline.name))
        # No event reports rows that were deleted between an interrupted attempt and the next one: the lake stage
        # deletes them (operations/snapshot_sweep.py).
        retaken = seen.snapshot_ts_ms if len(seen.snapshots) > 1 else None
        lsn = max(seen.snapshots, default=None)
        epochs.complete(epoch.number, Completion(snapshot_lsn=lsn, completed_at=_now(), retaken_ts_ms=retaken))


def _now() -> datetime:
    return datetime.now(UTC)


def topic_metadata(
    instance: dg.DagsterInstance,
    table: PipelineTable,
    kafka: Kafka,
    state: topic_state.TopicState,
    schema: TableSchema,
    changes: Sequence[str],
) -> dict[str, Any]:
    """Return the metadata of a topic asset, streamed or polled; `schema` is the captured schema of its records."""
    return {
        "dagster/row_count": count_records(instance, table, kafka, state),
        **standard_metadata.sent_columns(
            table.key("source"), list(sent_columns(schema.columns, table.landing_transforms))
        ),
        "dagster/uri": f"kafka://{kafka.servers()}/{table.topic}",
        "changes": standard_metadata.changes(changes),
        "topic_id": state.topic_id,
        "offsets": dg.MetadataValue.json({str(p): [state.begins[p], end] for p, end in state.ends.items()}),
    }


def count_records(
    instance: dg.DagsterInstance, table: PipelineTable, kafka: Kafka, state: topic_state.TopicState
) -> int:
    """Return the number of the topic's committed records.

    Offsets do not show it, because transaction markers also have offsets. The records since the last materialisation
    are counted, and added to the number in its metadata.
    """
    last = standard_metadata.latest(instance, table.key("topic"))
    ranges = {partition: (state.begins[partition], end) for partition, end in state.ends.items()}
    known, rows, offsets = (last.get(name) for name in ("topic_id", "dagster/row_count", "offsets"))
    if known is None or known.value != state.topic_id or rows is None or offsets is None:
        return kafka.count_records(table.topic, ranges)
    ends: dict[str, list[int]] = offsets.value
    new = {p: (max(first, ends.get(str(p), [0, 0])[1]), end) for p, (first, end) in ranges.items()}
    return int(str(rows.value)) + kafka.count_records(table.topic, new)


def require_published(pipeline: Pipeline, postgres: SourcePostgres, *, incremental: bool = False) -> None:
    """Raise ContractError if the publication lacks a table of the pipeline, or if `incremental`, the signal table.

    The connector would start nevertheless, and the changes of a missing table would be lost from the snapshot until the
    table is added.
    """
    source = pipeline.spec.source
    found = postgres.publication(source.publication)
    published = found.tables if found else ()
    names = [*source.tables, HEARTBEAT_TABLE, *([pipeline.signal_table] if incremental else [])]
    missing = [name for name in names if (source.schema_, name) not in published]
    if missing:
        raise ContractError(
            f"Cannot start connector {pipeline.connector}: publication {source.publication} of database "
            f"{source.database} lacks {', '.join(missing)}, whose changes would be lost. Materialise the source assets "
            f"of {pipeline.name} first."
        )
