"""Checks of the stream: the connector runs, its slot is healthy, and the topic has the required configuration."""

import dagster as dg

from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.checks.light_check import LightCheck, light_check
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import stream_continuity, stream_faults
from resources.connect.connector_interface import Connectors
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres

_MB = 2**20


def build(table: PipelineTable) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a topic asset."""
    whole = [] if table.pipeline.polled else [_stream_whole(table)]
    return [*(check.definition for check in light(table)), *whole]


def light(table: PipelineTable) -> list[LightCheck]:
    """Return the checks that the health sensor also evaluates."""
    return [*([] if table.pipeline.polled else _connector_checks(table)), _topic_contract(table)]


def _connector_checks(table: PipelineTable) -> list[LightCheck]:
    pipeline = table.pipeline
    asset = table.key("topic")

    @light_check(
        asset=asset,
        description=f"Connector {pipeline.connector} and all its tasks are RUNNING.",
        metadata=tiers.LATENESS,
    )
    def connector_running(connect: dg.ResourceParam[Connectors]) -> dg.AssetCheckResult:
        status = connect.status(pipeline.connector)
        if status is None:
            return dg.AssetCheckResult(passed=False, metadata={"state": "the connector does not exist"})
        return dg.AssetCheckResult(
            passed=status.is_running(),
            metadata={
                "state": status.state,
                "tasks": dg.MetadataValue.json({str(task.id): task.state for task in status.tasks})
                if status.tasks_known
                else "not reported: the state is the connector's only; watermark_fresh shows whether changes arrive",
                "causes": dg.MetadataValue.json([task.cause for task in status.failed_tasks]),
            },
        )

    @light_check(
        asset=asset,
        description=(
            f"Slot {pipeline.slot} is active, valid, and retains less than {pipeline.spec.retained_wal_limit_mb} MB of "
            "WAL."
        ),
        metadata=tiers.LATENESS,
    )
    def slot_healthy(postgres: Postgres) -> dg.AssetCheckResult:
        slot = pipeline.source_postgres(postgres).slot(pipeline.slot)
        if slot is None:
            return dg.AssetCheckResult(passed=False, metadata={"slot": f"there is no slot {pipeline.slot}"})
        retained = slot.retained_bytes
        healthy = slot.active and slot.invalidation_reason is None and retained is not None
        return dg.AssetCheckResult(
            passed=healthy and (retained or 0) < pipeline.spec.retained_wal_limit_mb * _MB,
            metadata={
                "active": slot.active,
                "retained_wal_bytes": -1 if retained is None else retained,
                "wal_status": slot.wal_status or "unknown",
                "invalidation_reason": slot.invalidation_reason or "none",
            },
        )

    return [connector_running, slot_healthy]


def _topic_contract(table: PipelineTable) -> LightCheck:
    pipeline = table.pipeline

    @light_check(
        asset=table.key("topic"),
        description="The topic keeps all records for the replay window, is not compacted, and has its partitions.",
        metadata=tiers.LATENESS,  # records that are landed in time are correct, so datasets are built nevertheless
    )
    def topic_contract(kafka: Kafka) -> dg.AssetCheckResult:
        found = kafka.topic(table.topic)
        if found is None:
            return dg.AssetCheckResult(passed=False, metadata={"topic": f"there is no topic {table.topic}"})
        retention = int(found.config["retention.ms"])
        kept = retention == -1 or retention >= pipeline.retention_ms
        kept = kept and found.config["retention.bytes"] == "-1"  # a size limit deletes records of any age
        return dg.AssetCheckResult(
            passed=kept
            and found.config["cleanup.policy"] == "delete"
            and found.partitions == pipeline.spec.stream.partitions,
            metadata={**found.config, "partitions": found.partitions, "replay_window_ms": pipeline.retention_ms},
        )

    return topic_contract


def _stream_whole(table: PipelineTable) -> dg.AssetChecksDefinition:
    pipeline = table.pipeline

    @dg.asset_check(
        asset=table.key("topic"),
        description=(
            "The stream has no gap: database cluster, slot, publication, topic and Connect's offset are those of the "
            "current epoch, and no heartbeat is missing."
        ),
        blocking=True,
        op_tags=step_priority.STREAM,
    )
    def stream_whole(
        postgres: Postgres, kafka: Kafka, connect: dg.ResourceParam[Connectors], store: ObjectStore
    ) -> dg.AssetCheckResult:
        bucket = location(store).store()
        faults = list(
            stream_continuity.find_faults(pipeline, pipeline.source_postgres(postgres), kafka, connect, bucket)
        )
        epochs = Epochs(bucket, pipeline.name)
        epoch = epochs.current()
        if epoch is not None:
            faults += stream_faults.topic_faults(kafka, table.topic, epoch)
        unfinished = epoch is not None and epochs.completion(epoch.number) is None
        added = epoch is not None and not epoch.contains(table.topic)
        return dg.AssetCheckResult(
            passed=not faults and not unfinished and not added,
            metadata={
                "faults": dg.MetadataValue.json(faults),
                "epoch": 0 if epoch is None else epoch.number,
                "snapshot": "not in the lake yet" if unfinished else "not in Kafka yet" if added else "complete",
                "repair": f"cdc-lake resnapshot {pipeline.name}"
                if faults or unfinished
                else f"materialise {table.asset('topic')}"
                if added
                else "nothing to do",
            },
        )

    return stream_whole
