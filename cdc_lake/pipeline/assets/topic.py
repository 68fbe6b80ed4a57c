"""The topic stage: start the connector, and wait until everything that the source has committed is in Kafka."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.source import stream_progress as sightings
from cdc_lake.contract.source.epochs import Completion, Epochs, Start
from cdc_lake.contract.table import lease
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.naming import Flow, TableFlow, location
from cdc_lake.pipeline.source_health import heartbeat_sequence, stream_continuity, topic_state
from cdc_lake.pipeline.spec import HEARTBEAT_TABLE
from resources.connect.connector_config import render, table_pattern
from resources.connect.connector_interface import Connectors
from resources.deployment import Deployment
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres

CONNECTORS = Path(__file__).parents[3] / "connectors"


def build(table: TableFlow) -> dg.AssetsDefinition:
    """Return the topic asset of a table."""
    flow = table.pipeline

    @dg.asset(
        key=table.key("topic"),
        # The connector captures all tables of the pipeline: each must be in the publication before it starts.
        deps=[each.key("source") for each in flow.tables],
        description=(
            f"Every committed change of {table.source_table}, in commit order, written by connector {flow.connector}."
        ),
        kinds={"kafka"},
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=table.tags("topic"),
        freshness_policy=flow.freshness_policy,
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
        postgres = flow.at_source(postgres)
        bucket = location(store).store()
        config = connector_config(flow, postgres, deployment)
        starts = _topics(flow, kafka, config)
        key, owner = object_names.resnapshot_lease_key(flow.name), f"dagster run {context.run.run_id}"
        with lease.held(bucket, key, owner):  # the connector must not be started during a resnapshot
            _require_startable(flow, postgres, kafka, connect, bucket, config, starts)
            require_published(flow, postgres)
            failpoints.reached("topic.before_connector")
            outcome = connect.put(flow.connector, config)
        failpoints.reached("topic.after_connector")
        context.log.info(f"connector {flow.connector}: {outcome}; waiting for its tasks and its snapshot")
        status = connect.wait_running(flow.connector)
        beat = table_progress.barrier(
            postgres,
            kafka,
            connect,
            flow,
            deployment.snapshot_seconds,
            running=lambda: connect.wait_running(flow.connector),
            poll_seconds=deployment.poll_seconds,
        )
        epoch = _settled(flow, postgres, kafka, connect, bucket)
        state = topic_state.now(kafka, table)
        slot = postgres.slot(flow.slot)
        columns = captured_schema.latest(bucket, flow.name, table.source_table).columns
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": _records(context, kafka, table.topic, state),
                "dagster/column_schema": standard_metadata.event_schema(
                    (column.name, column.type) for column in columns
                ),
                "dagster/column_lineage": standard_metadata.identity_lineage(
                    table.key("source"), (column.name for column in columns)
                ),
                "dagster/uri": f"kafka://{kafka.servers()}/{table.topic}",
                "changes": standard_metadata.UNCHANGED
                if outcome == "unchanged"
                else f"connector {flow.connector} {outcome}",
                "connector": f"{flow.connector}: {outcome}",
                "tasks_running": len(status.tasks),
                "topic_id": state.topic_id,
                "epoch": epoch,
                "offsets": dg.MetadataValue.json({str(p): [state.begins[p], end] for p, end in state.ends.items()}),
                "retained_wal_bytes": 0 if slot is None else slot.retained_bytes or 0,
                "lag_bytes": max(0, postgres.current_lsn() - beat.lsn),
                **standard_metadata.watermark(beat),
            }
        )

    return topic_asset


def _topics(flow: Flow, kafka: Kafka, config: Mapping[str, str]) -> dict[str, Start]:
    """Create the pipeline's missing topics; return the id and first offsets of each topic."""
    starts = {}
    for topic in (*(table.topic for table in flow.tables), flow.heartbeat_topic):
        kafka.ensure_topic(topic, flow.spec.stream.partitions, flow.topic_settings(config))
        found = kafka.topic(topic)
        if found is None:
            raise ContractError(
                f"topic {topic} was deleted right after it was created: find out which program deletes it"
            )
        starts[topic] = Start(topic_id=found.topic_id, offsets=kafka.begin_offsets(topic))
    return starts


def _require_startable(
    flow: Flow,
    postgres: Postgres,
    kafka: Kafka,
    connect: Connectors,
    store: Bucket,
    config: Mapping[str, str],
    starts: Mapping[str, Start],
) -> None:
    """Raise SourceBrokenError or ContractError if the connector must not be started or continued."""
    epochs = Epochs(store, flow.name)
    epoch = stream_continuity.begin(flow, postgres, connect, store, starts)
    stream_continuity.require_finished(flow, epochs, epoch)
    joined = [table.name for table in flow.tables if epoch.starts and table.topic not in epoch.starts]
    if joined:
        raise ContractError(
            f"{', '.join(joined)} joined pipeline {flow.name} after its snapshot: the lake would lack the existing "
            f"rows. Run `cdc-lake resnapshot {flow.name}`: it reads all tables again, with {', '.join(joined)}"
        )
    if epochs.completion(epoch.number) is None:
        postgres.beat(flow.spec.source.schema_)  # the snapshot's position is the LSN of the heartbeat that it reads
    elif connect.get(flow.connector) is None:
        # The connector was deleted. Its offset can be read only while it exists, so create it without starting it.
        connect.halt(flow.connector, config)
    stream_continuity.require_whole(flow, postgres, kafka, connect, store)


def _settled(flow: Flow, postgres: Postgres, kafka: Kafka, connect: Connectors, store: Bucket) -> int:
    """Mark the first epoch complete after its snapshot; return the epoch's number.

    Raises SourceBrokenError, ContractError.
    """
    stream_continuity.require_whole(flow, postgres, kafka, connect, store)
    epochs = Epochs(store, flow.name)
    epoch = stream_continuity.begin(flow, postgres, connect, store)
    if epochs.completion(epoch.number) is None:
        # Read the heartbeats again: the stored state may be from before the snapshot's last attempt.
        stored = sightings.load(store, flow.name)
        seen, _ = heartbeat_sequence.follow(
            kafka, flow, epoch, stored if stored is not None and stored.epoch == epoch.number else None
        )
        # No event reports rows that were deleted between an interrupted attempt and the next one: lake sweeps them.
        retaken = seen.snapshot_ts_ms if len(seen.snapshots) > 1 else None
        last = max(seen.snapshots, default=None)
        epochs.complete(epoch.number, Completion(snapshot_lsn=last, completed_at=_now(), retaken_ts_ms=retaken))
    return epoch.number


def _now() -> datetime:
    return datetime.now(UTC)


def _records(context: dg.AssetExecutionContext, kafka: Kafka, topic: str, state: topic_state.TopicState) -> int:
    """Return the number of committed records, counted from the last materialisation on: markers take offsets too."""
    last = standard_metadata.last(context.instance, context.asset_key)
    ranges = {partition: (state.begins[partition], end) for partition, end in state.ends.items()}
    known, rows, offsets = (last.get(name) for name in ("topic_id", "dagster/row_count", "offsets"))
    if known is None or known.value != state.topic_id or rows is None or offsets is None:
        return kafka.count_records(topic, ranges)
    ends: dict[str, list[int]] = offsets.value
    new = {p: (max(first, ends.get(str(p), [0, 0])[1]), end) for p, (first, end) in ranges.items()}
    return int(str(rows.value)) + kafka.count_records(topic, new)


def require_published(flow: Flow, postgres: Postgres) -> None:
    """Raise ContractError if the publication lacks a table of the pipeline.

    The connector would start nevertheless, and the changes of the missing tables would be lost from the snapshot until
    they are added.
    """
    source = flow.spec.source
    found = postgres.publication(source.publication)
    published = found.tables if found else ()
    missing = [name for name in [*source.tables, HEARTBEAT_TABLE] if (source.schema_, name) not in published]
    if missing:
        raise ContractError(
            f"publication {source.publication} of database {source.database} lacks {', '.join(missing)}: changes there "
            f"would be lost. Materialise the source assets of {flow.name} first"
        )


def connector_config(flow: Flow, postgres: Postgres, deployment: Deployment) -> dict[str, str]:
    """Return a pipeline's source connector configuration: `connectors/debezium-postgres.json` with its values.

    A file of the same name in `connectors/<pipeline>/` replaces it.
    """
    own = CONNECTORS / flow.name / "debezium-postgres.json"
    source = flow.spec.source
    return render(
        own if own.is_file() else CONNECTORS / own.name,
        {
            "host": deployment.source_host,
            "port": str(postgres.port),
            "user": postgres.capture_role or postgres.login().user,
            "password": deployment.password_reference,
            "database": source.database,
            "slot": flow.slot,
            "publication": source.publication,
            "prefix": flow.spec.stream.prefix,
            # The heartbeat first, so that a snapshot's heartbeat arrives before its other rows.
            "tables": table_pattern((source.schema_, name) for name in [HEARTBEAT_TABLE, *source.tables]),
            "schema": source.schema_,
            "partitions": str(flow.spec.stream.partitions),
            "retention_ms": str(flow.retention_ms),
            "exactly_once": deployment.exactly_once,
            "record_bytes": str(deployment.record_bytes),
        },
    )
