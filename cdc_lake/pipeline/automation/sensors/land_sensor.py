"""The sensor that launches landing: by the flush rule, or for new objects of a sink connector.

One run lands all tables with new records, including those whose records could wait longer.
"""

from dataclasses import dataclass

import dagster as dg

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.source.epochs import Epoch, Epochs
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.pending_runs import pending_adoption
from cdc_lake.pipeline.automation.run_requests import Pending, Tick
from cdc_lake.pipeline.automation.sensors import flush_rule
from cdc_lake.pipeline.automation.sensors.flush_rule import FlushCursor
from cdc_lake.pipeline.automation.sensors.parallel_map import map_tables
from cdc_lake.pipeline.automation.sensors.table_runs import land_name, request_land
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import stream_continuity, topic_state
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

_EVERY_SECONDS = 5


def build(pipeline: Pipeline, jobs: Jobs, listing_seconds: int) -> dg.SensorDefinition:
    """Return the sensor of a pipeline; it lists the objects of a sink connector every `listing_seconds`."""
    return (
        _landing(pipeline, jobs) if pipeline.spec.landing.sink is None else _adopting(pipeline, jobs, listing_seconds)
    )


def _landing(pipeline: Pipeline, jobs: Jobs) -> dg.SensorDefinition:
    @dg.sensor(
        name=land_name(pipeline),
        job=jobs.definitions[jobs.land.name],
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Lands and applies the tables of {pipeline.name} {flush_rule.describe(pipeline)}.",
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        cursor = FlushCursor.model_validate_json(context.cursor) if context.cursor else FlushCursor()
        pending: dict[str, Pending] = {}
        can_wait: dict[str, str] = {}
        epoch = Epochs(location(store).store(), pipeline.name).current()
        unlanded = map_tables(context, pipeline.tables, lambda table: _unlanded(table, epoch, kafka, store))
        for table in pipeline.tables:
            found = unlanded[table.name]
            if isinstance(found, dg.SkipReason):
                pending[table.name] = found
                continue
            reason = flush_rule.reason_to_wait(cursor, table.name, table.landing, found.offsets, found.manifest)
            pending[table.name] = reason or found.position
            if found.offsets and reason:
                can_wait[table.name] = found.position
        context.update_cursor(cursor.model_dump_json())
        return request_land(context, jobs, pending, can_wait).tick

    return land


@dataclass(frozen=True)
class _Unlanded:
    """The result of table_progress.offsets_behind(), the number of the newest manifest, and the run's position."""

    offsets: int
    manifest: int
    position: str


def _unlanded(table: PipelineTable, epoch: Epoch | None, kafka: Kafka, store: ObjectStore) -> _Unlanded:
    stream_continuity.require_complete_topic(table, epoch)
    # Read the chain before the topic, so that it never appears to be ahead of the topic.
    head = Chain(location(store).store(), table.pipeline.name, table.topic).head()
    state = topic_state.committed(kafka, table)
    number = 0 if head is None else head.number
    position = f"land:{table.topic}:{state.topic_id}:after-manifest-{number}"
    return _Unlanded(table_progress.offsets_behind(head, state), number, position)


def _adopting(pipeline: Pipeline, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=land_name(pipeline),
        job=jobs.definitions[jobs.land.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adopts and applies the objects that a sink connector writes for the tables of {pipeline.name}.",
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        sinks = {table.name: sink for table in pipeline.tables if (sink := landing_modes.sink(table)) is not None}
        tables = [table for table in pipeline.tables if table.name in sinks]
        pending = map_tables(context, tables, lambda table: pending_adoption(table, sinks[table.name], kafka, store))
        return request_land(context, jobs, pending).tick

    return land
