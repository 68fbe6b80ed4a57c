"""The sensor that launches landing: by the flush rule, or for new objects of a sink connector.

One run lands all tables with new records, including those whose records could wait longer.
"""

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.source.epochs import Epoch, Epochs
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.pending_runs import pending_adoption
from cdc_lake.pipeline.automation.run_requests import Pending, Tick
from cdc_lake.pipeline.automation.sensors import flush_rule
from cdc_lake.pipeline.automation.sensors.flush_rule import FlushCursor
from cdc_lake.pipeline.automation.sensors.table_runs import land_name, launch_land
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.naming import Flow, TableFlow
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.source_health import stream_continuity, topic_state
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

_EVERY_SECONDS = 5


def build(flow: Flow, jobs: Jobs, listing_seconds: int) -> dg.SensorDefinition:
    """Return the sensor of a pipeline; it lists the objects of a sink connector every `listing_seconds`."""
    return _landing(flow, jobs) if flow.spec.landing.sink is None else _adopting(flow, jobs, listing_seconds)


def _landing(flow: Flow, jobs: Jobs) -> dg.SensorDefinition:
    @dg.sensor(
        name=land_name(flow),
        job=jobs.definitions[jobs.land.name],
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Lands and applies the tables of {flow.name} {flush_rule.describe(flow.spec.landing)}.",
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        cursor = FlushCursor.model_validate_json(context.cursor) if context.cursor else FlushCursor()
        pending: dict[str, Pending] = {}
        can_wait: dict[str, str] = {}
        epoch = Epochs(location(store).store(), flow.name).current()
        for table in flow.tables:
            position, reason = _position(table, epoch, cursor, kafka, store)
            pending[table.name] = reason or position
            if position and reason:
                can_wait[table.name] = position
        context.update_cursor(cursor.model_dump_json())
        return launch_land(context, jobs, pending, can_wait).tick

    return land


def _position(
    table: TableFlow, epoch: Epoch | None, cursor: FlushCursor, kafka: Kafka, store: ObjectStore
) -> tuple[str, dg.SkipReason | None]:
    """Return the position of a landing ("" if there is nothing to land), and the reason to wait (None to land now)."""
    flow = table.pipeline
    # Read the chain before the topic, so that it never appears to be ahead of the topic.
    bucket = location(store).store()
    try:
        stream_continuity.require_complete(table, epoch)
        head = Chain(bucket, flow.name, table.topic).head()
        state = topic_state.now(kafka, table, bucket)
    except ContractError as error:  # one table's error must not stop the others
        return "", dg.SkipReason(error.user_message)
    number, behind = 0 if head is None else head.number, table_progress.behind(head, state)
    reason = flush_rule.reason_to_wait(cursor, table.name, flow.spec.landing, behind, number)
    return f"land:{table.topic}:{state.topic_id}:after-manifest-{number}" if behind else "", reason


def _adopting(flow: Flow, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=land_name(flow),
        job=jobs.definitions[jobs.land.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adopts and applies the objects that a sink connector writes for the tables of {flow.name}.",
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        sinks = [(table, landing_modes.sink(table)) for table in flow.tables]
        pending = {table.name: pending_adoption(table, sink, kafka, store) for table, sink in sinks if sink}
        return launch_land(context, jobs, pending).tick

    return land
