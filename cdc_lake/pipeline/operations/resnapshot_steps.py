"""The steps of a resnapshot that a captured and a polled source share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import (
    ContractError,
    EpochNotLandedError,
    OffsetsExpiredError,
    SchemaChangeError,
    TableIncompleteError,
    TopicRecreatedError,
)
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.source.epochs import Epoch, Epochs, Start
from cdc_lake.contract.table import lease
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.connector_config import connector_config
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.operations.epoch_opening import open_epoch
from cdc_lake.pipeline.operations.land_and_apply import RunJob
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import (
    schema_capture,
    stream_continuity,
    stream_faults,
    topic_state,
)
from resources.connect.connector_interface import Connectors
from resources.kafka.resource import Kafka


@dataclass(frozen=True)
class ResnapshotSystems:
    """The systems that a resnapshot uses. `run` runs a Spark job; `config` is the connector's configuration."""

    postgres: SourcePostgres
    kafka: Kafka
    connect: Connectors
    location: S3Location
    run: RunJob
    config: Mapping[str, str]
    snapshot_seconds: float
    poll_seconds: float = 1.0
    """The interval, in seconds, between two reads of the connector's state during a wait."""
    lease_wait_seconds: float = lease.WAIT_SECONDS
    settle_seconds: float = topic_state.MAX_TRANSACTION_SECONDS


def systems_of(
    pipeline: Pipeline, resources: Mapping[str, Any], run: RunJob, snapshot_seconds: float | None = None
) -> ResnapshotSystems:
    """Return a pipeline's systems, of the profile's resources by name; `snapshot_seconds` replaces the profile's."""
    postgres, deployment = pipeline.source_postgres(resources["postgres"]), resources["deployment"]
    return ResnapshotSystems(
        postgres=postgres,
        kafka=resources["kafka"],
        connect=resources["connect"],
        location=location(resources["store"]),
        run=run,
        config={} if pipeline.polled else connector_config(pipeline, postgres, deployment),
        snapshot_seconds=snapshot_seconds or deployment.snapshot_seconds,
        poll_seconds=deployment.poll_seconds,
    )


def started_epoch(epochs: Epochs) -> Epoch:
    """Return the pipeline's current epoch. Raises ContractError if the pipeline was never started."""
    current = epochs.current()
    if current is None:
        raise ContractError(
            f"Cannot resnapshot pipeline {epochs.pipeline}: it was never started. Materialise its assets."
        )
    return current


def open_chains(pipeline: Pipeline, systems: ResnapshotSystems, epoch: Epoch, chain: str) -> Iterator[str]:
    """Capture the schema of each table, and open the epoch in its manifest chain, whose id is `chain`."""
    store = systems.location.store()
    for table in pipeline.tables:
        # Any schema change is allowed here, because every row is read again.
        schema_capture.capture(table, systems.postgres, store, epoch=epoch.number)
        if open_epoch(Chain(store, pipeline.name, table.topic, chain), epoch):
            yield f"{table.name}: epoch {epoch.number} opened"
    failpoints.reached("resnapshot.after_opening")


def can_continue(pipeline: Pipeline, systems: ResnapshotSystems, epochs: Epochs, epoch: Epoch) -> bool:
    """Return whether a resnapshot continues this epoch: it is neither complete nor broken.

    Marks an incomplete epoch broken if one of its topics was deleted, because its records are lost, or if a table was
    added to the YAML, because its snapshot does not read that table.
    """
    if epochs.completion(epoch.number) is not None or epochs.broken(epoch.number) is not None:
        return False
    topics = (table.topic for table in pipeline.tables)
    lost = [fault for topic in topics for fault in stream_faults.topic_faults(systems.kafka, topic, epoch)]
    if epoch.starts:
        added = (table.name for table in pipeline.tables if table.topic not in epoch.starts)
        lost += [f"table {name} was added after the snapshot of epoch {epoch.number} had begun" for name in added]
    if lost:
        epochs.mark_broken(epoch.number, stream_continuity.new_break(lost))
    return not lost


@contextmanager
def broken_if_lost(epochs: Epochs, epoch: Epoch) -> Iterator[None]:
    """Mark the epoch broken if the block shows that it cannot be completed, so that the next resnapshot begins another.

    Its records are lost, or the schema has changed since they were sent. Raises the block's error.
    """
    try:
        yield
    except (OffsetsExpiredError, SchemaChangeError, TopicRecreatedError) as error:
        epochs.mark_broken(epoch.number, stream_continuity.new_break([error.user_message]))
        raise


@contextmanager
def resnapshot_lease(store: ObjectStore, pipeline: Pipeline, wait_seconds: float) -> Iterator[None]:
    """Hold the pipeline's resnapshot lease."""
    with lease.held(
        store, object_names.resnapshot_lease_key(pipeline.name), f"resnapshot {uuid.uuid4()}", wait_seconds=wait_seconds
    ):
        yield


def land_remaining(systems: ResnapshotSystems, table: PipelineTable, claim: lease.Claim) -> tuple[Start, str]:
    """Land the records that the stopped connector left in the topic, if possible.

    Returns the offsets at which the topic continues in the next epoch, and a phrase that describes the outcome.
    """
    # Waits for open transactions, because their records belong to the previous epoch.
    start = continued_at(systems, table.topic)
    try:
        records = land_and_apply.land_all(
            table,
            partial(
                land_and_apply.land_claimed,
                *(table, systems.postgres, systems.kafka, systems.location, systems.run, claim),
            ),
            systems.snapshot_seconds,
        )
    # The new epoch resolves these errors: its snapshot reads every row again, with the current schema.
    except (
        EpochNotLandedError,
        OffsetsExpiredError,
        SchemaChangeError,
        TableIncompleteError,
        TopicRecreatedError,
    ) as error:
        return start.model_copy(
            update={"jump": error.user_message}
        ), f"Cannot land the remaining records: {error.user_message}"
    except ContractError as error:
        pipeline = table.pipeline
        state = "" if pipeline.polled else f" Connector {pipeline.connector} is stopped, and nothing else was changed."
        or_start = "" if pipeline.polled else f", or materialise {pipeline.name}/topic to start the connector"
        raise type(error)(
            f"{error.user_message}{state} Fix the cause and run `cdc-lake resnapshot {pipeline.name}` again{or_start}."
        ) from error
    return start, f"{records} remaining records landed"


def continued_at(systems: ResnapshotSystems, topic: str) -> Start:
    """Return the offsets of a topic at which the next epoch continues, after all open transactions have ended."""
    ends = topic_state.require_settled(systems.kafka, topic, systems.settle_seconds)
    found = systems.kafka.topic(topic)
    if found is None:
        raise ContractError(f"Cannot resnapshot topic {topic}: it was deleted during the resnapshot. Run this again.")
    return Start(topic_id=found.topic_id, offsets=dict(ends))


def upsert(systems: ResnapshotSystems, table: PipelineTable, spec: UpsertSpec, epoch: Epoch) -> int:
    """Apply landed records; return the number of keys."""
    report = land_and_apply.apply(table, systems.postgres, spec, systems.run, epoch.number).report
    return 0 if report is None else report.keys
