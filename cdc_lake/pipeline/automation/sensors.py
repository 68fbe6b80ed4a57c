"""The sensors that launch landing, adoption and apply runs, and the sensor that restarts failed connector tasks."""

import json
import time

import dagster as dg
from pydantic import BaseModel

from cdc_lake.contract.errors import ContractError, SourceBrokenError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.jobs.adoption.listing import Sink
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation.jobs import Job, Jobs
from cdc_lake.pipeline.automation.pending_runs import pending_adoption, pending_apply, pending_report
from cdc_lake.pipeline.automation.run_requests import BACKOFF_SECONDS, Tick, backoff, launch
from cdc_lake.pipeline.automation.sensor_intervals import SensorIntervals
from cdc_lake.pipeline.naming import Flow, TableFlow, location
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.source_health import stream_continuity, topic_state
from resources.connect.connector_interface import FAILED, Connectors, ConnectorStatus
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres

_EVERY_SECONDS = 5
_EXAMINE_EVERY_SECONDS = 30


def build(
    flow: Flow,
    jobs: Jobs,
    intervals: SensorIntervals = SensorIntervals(),  # noqa: B008 - it is frozen
) -> list[dg.SensorDefinition]:
    """Return the sensors of a pipeline: one for its connector, two for each table."""
    sensors = [_connector(flow, jobs, intervals.connector_seconds)]
    for table in flow.tables:
        sink = landing_modes.sink(table)
        if sink is None:
            sensors.append(_landing(table, jobs))
        else:
            sensors.append(_adopting(table, jobs, sink, intervals.listing_seconds))
        sensors.append(_applying(table, jobs, intervals.listing_seconds))
    return sensors


def land_name(table: TableFlow) -> str:
    """Return the name of the sensor that launches a table's landing or adoption."""
    return f"{table.pipeline.name}_{table.name}_land"


def apply_name(table: TableFlow) -> str:
    """Return the name of the sensor that launches a table's apply runs."""
    return f"{table.pipeline.name}_{table.name}_apply"


def launch_land(context: dg.SensorEvaluationContext, table: TableFlow, jobs: Jobs, position: str) -> Tick:
    """Request a run that lands a table's records and applies them; it counts as a run of the table's land sensor.

    One run does both: a separate run for the lake would load the definitions and start Spark again.
    """
    part = jobs.land.only(table.key("raw"), table.key("lake"))
    return launch(context, part, position, sensor=land_name(table), excluding=[apply_name(table)])


def launch_apply(context: dg.SensorEvaluationContext, table: TableFlow, jobs: Jobs, position: str) -> Tick:
    """Request a run that applies a table's landed records, unless an active landing run will apply them."""
    part = jobs.apply.only(table.key("lake"), checking=[table.key("raw")])
    return launch(context, part, position, sensor=apply_name(table), excluding=[land_name(table)])


def _landing(table: TableFlow, jobs: Jobs) -> dg.SensorDefinition:
    flow = table.pipeline
    landing = flow.spec.landing

    @dg.sensor(
        name=land_name(table),
        job=jobs.definitions[jobs.land.name],
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Lands and applies {table.topic} as soon as {landing.flush_records} records wait, or one record waits for "
            f"{landing.flush_seconds} s."
        ),
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        # Read the chain before the topic, so that it never appears to be ahead of the topic.
        head = Chain(location(store).store(), flow.name, table.topic).head()
        try:
            state = topic_state.now(kafka, table)
        except ContractError as error:
            return dg.SkipReason(error.user_message)
        behind = table_progress.behind(head, state)
        if behind == 0:
            context.update_cursor("")
            return dg.SkipReason("everything is landed")
        number = 0 if head is None else head.number
        seen = json.loads(context.cursor) if context.cursor else {}
        since = seen["since"] if seen.get("manifest") == number else time.time()
        context.update_cursor(json.dumps({"manifest": number, "since": since}))
        waited = time.time() - since
        if 0 < behind < landing.flush_records and waited < landing.flush_seconds:
            return dg.SkipReason(f"offsets to land: {behind}, waiting for {waited:.0f} s")
        return launch_land(context, table, jobs, f"land:{table.topic}:{state.topic_id}:after-manifest-{number}")

    return land


def _adopting(table: TableFlow, jobs: Jobs, sink: Sink, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=land_name(table),
        job=jobs.definitions[jobs.land.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adopts and applies the objects that a sink connector writes from {table.topic}.",
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        pending = pending_adoption(table, sink, kafka, store)
        return pending if isinstance(pending, dg.SkipReason) else launch_land(context, table, jobs, pending)

    return land


def _applying(table: TableFlow, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=apply_name(table),
        job=jobs.definitions[jobs.apply.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Applies landed records of {table.topic} that the run that landed them did not apply.",
    )
    def apply(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        pending = pending_apply(table, store, owner=context.sensor_name)
        if isinstance(pending, dg.SkipReason):
            pending = pending_report(table, store, context.instance)
        return pending if isinstance(pending, dg.SkipReason) else launch_apply(context, table, jobs, pending)

    return apply


class _Restarts(BaseModel):
    """The connector sensor's cursor: the number of restarts, the time of the last one, and the time of the last
    examination of the stream (seconds since 1970).
    """

    count: int = 0
    at: float = 0.0
    examined: float = 0.0


def _connector(flow: Flow, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=f"{flow.name}_connector",
        job=jobs.definitions[jobs.connect.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Restarts failed tasks of {flow.connector} with growing pauses, and examines whether its stream is "
            "complete."
        ),
    )
    def connector(
        context: dg.SensorEvaluationContext,
        postgres: Postgres,
        kafka: Kafka,
        connect: dg.ResourceParam[Connectors],
        store: ObjectStore,
    ) -> Tick:
        status = connect.status(flow.connector)
        if status is None:
            return dg.SkipReason(f"there is no connector {flow.connector} yet")
        now = time.time()
        before = _Restarts.model_validate_json(context.cursor) if context.cursor else _Restarts()
        if status.state != FAILED and not status.failed_tasks:
            # A task that fails again soon after its restart must not reset the pauses.
            if status.is_running() and now >= before.at + BACKOFF_SECONDS[-1]:
                before = _Restarts(examined=before.examined)
            if now >= before.examined + _EXAMINE_EVERY_SECONDS:
                if faults := _faults(flow, postgres, kafka, connect, store):
                    return dg.SkipReason(faults)
                before = before.model_copy(update={"examined": now})
            context.update_cursor(before.model_dump_json())
            return dg.SkipReason(f"{flow.connector} is {status.state}, no task has failed")
        wait = before.at + backoff(before.count) - now if before.count else 0
        if wait > 0:
            return dg.SkipReason(f"{_failure(status)}; next restart in {wait:.0f} s")
        if faults := _faults(flow, postgres, kafka, connect, store):
            return dg.SkipReason(f"not restarted: {faults}")
        return _restart(
            context, flow, jobs.connect, connect, status, _Restarts(count=before.count + 1, at=now, examined=now)
        )

    return connector


def _restart(
    context: dg.SensorEvaluationContext,
    flow: Flow,
    job: Job,
    connect: Connectors,
    status: ConnectorStatus,
    after: _Restarts,
) -> Tick:
    """Restart what has failed; if that is not possible, launch a run of the topic, which re-creates the connector."""
    if not connect.can_restart(status):
        context.log.warning(f"{_failure(status)}: a run of the topic re-creates the connector")
        tick = launch(context, job, f"connector:{flow.connector}:{after.at:.0f}")
        if isinstance(tick, dg.SensorResult):
            context.update_cursor(after.model_dump_json())
        return tick
    restarted = connect.restart_failed(flow.connector)
    context.update_cursor(after.model_dump_json())
    tasks = f"tasks {list(restarted)} of {flow.connector}" if restarted else flow.connector
    message = f"restarted {tasks} ({_failure(status)}); next restart in {backoff(after.count)} s at the earliest"
    context.log.warning(message)
    return dg.SkipReason(message)


def _faults(flow: Flow, postgres: Postgres, kafka: Kafka, connect: Connectors, store: ObjectStore) -> str:
    """Return the error that the stages would raise about the connector's stream; "" if the stream is complete."""
    try:
        stream_continuity.require_whole(flow, flow.at_source(postgres), kafka, connect, location(store).store())
    except SourceBrokenError as error:
        return error.user_message
    return ""


def _failure(status: ConnectorStatus) -> str:
    causes = "; ".join(task.cause for task in status.failed_tasks)
    return f"task failed: {causes}" if causes else str(status)
