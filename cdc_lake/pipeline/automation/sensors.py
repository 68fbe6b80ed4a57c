"""Sensors: new records in Kafka are landed and applied, what is landed only is applied, a failed task is restarted."""

import json
import time

import dagster as dg
from pydantic import BaseModel

from cdc_lake.contract.errors import ContractError, SourceBrokenError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.jobs.adoption.listing import Sink
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation.jobs import Job, Jobs
from cdc_lake.pipeline.automation.pending_runs import to_adopt, to_apply, to_report
from cdc_lake.pipeline.automation.run_requests import BACKOFF_SECONDS, Tick, launch, pause
from cdc_lake.pipeline.automation.sensor_intervals import Pace
from cdc_lake.pipeline.naming import Flow, TableFlow, location
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.source_health import stream_continuity, topic_state
from resources.connectors import FAILED, Connectors, ConnectorStatus
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.postgres import Postgres

_EVERY_SECONDS = 5
_EXAMINED_EVERY_SECONDS = 30


def build(flow: Flow, jobs: Jobs, looks: Pace = Pace()) -> list[dg.SensorDefinition]:  # noqa: B008 - it is frozen
    """The sensors of a pipeline: one on its connector, two on each table."""
    sensors = [_connector(flow, jobs, looks.connector_seconds)]
    for table in flow.tables:
        sink = landing_modes.sink(table)
        sensors.append(_landing(table, jobs) if sink is None else _adopting(table, jobs, sink, looks.listing_seconds))
        sensors.append(_applying(table, jobs, looks.listing_seconds))
    return sensors


def land_name(table: TableFlow) -> str:
    """The name of the sensor that launches a table's landing or adoption."""
    return f"{table.pipeline.name}_{table.name}_land"


def apply_name(table: TableFlow) -> str:
    """The name of the sensor that launches runs that apply what is landed of a table."""
    return f"{table.pipeline.name}_{table.name}_apply"


def launch_land(context: dg.SensorEvaluationContext, table: TableFlow, jobs: Jobs, position: str) -> Tick:
    """Request a run that lands a table's records and applies them, whichever sensor found that they are there.

    One run does both: a run of its own for the lake would load the definitions and start Spark once more.
    """
    part = jobs.land.only(table.key("raw"), table.key("lake"))
    return launch(context, part, position, sensor=land_name(table), excluding=[apply_name(table)])


def launch_apply(context: dg.SensorEvaluationContext, table: TableFlow, jobs: Jobs, position: str) -> Tick:
    """Request a run that applies what is landed of a table, unless a run that landed it is about to."""
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
            f"Lands and applies {table.topic} at {landing.flush_records} records or after {landing.flush_seconds} s."
        ),
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        # The chain before the topic: what is landed meanwhile is then no more than the topic has.
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
            return dg.SkipReason(f"{behind} offsets wait since {waited:.0f} s")
        return launch_land(context, table, jobs, f"land:{table.topic}:{state.topic_id}:after-manifest-{number}")

    return land


def _adopting(table: TableFlow, jobs: Jobs, sink: Sink, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=land_name(table),
        job=jobs.definitions[jobs.land.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Adopts and applies what a sink connector writes of {table.topic}.",
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> Tick:
        due = to_adopt(table, sink, kafka, store)
        return due if isinstance(due, dg.SkipReason) else launch_land(context, table, jobs, due)

    return land


def _applying(table: TableFlow, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=apply_name(table),
        job=jobs.definitions[jobs.apply.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Applies what is landed of {table.topic} and not applied by the run that landed it.",
    )
    def apply(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        due = to_apply(table, store, owner=context.sensor_name)
        if isinstance(due, dg.SkipReason):
            due = to_report(table, store, context.instance)
        return due if isinstance(due, dg.SkipReason) else launch_apply(context, table, jobs, due)

    return apply


class _Restarts(BaseModel):
    """The connector sensor's cursor: how often it restarted, when last, and when it last looked at the stream (seconds
    since 1970).
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
            f"Restarts failed tasks of {flow.connector}, waiting longer each time; looks whether its stream is whole."
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
            # A task that fails anew soon after its restart must not start the pauses over.
            if status.is_running() and now >= before.at + BACKOFF_SECONDS[-1]:
                before = _Restarts(examined=before.examined)
            if now >= before.examined + _EXAMINED_EVERY_SECONDS:
                if faults := _faults(flow, postgres, kafka, connect, store):
                    return dg.SkipReason(faults)
                before = before.model_copy(update={"examined": now})
            context.update_cursor(before.model_dump_json())
            return dg.SkipReason(f"{flow.connector} is {status.state}, no task has failed")
        wait = before.at + pause(before.count) - now if before.count else 0
        if wait > 0:
            return dg.SkipReason(f"{_failure(status)}; next restart in {wait:.0f} s")
        if faults := _faults(flow, postgres, kafka, connect, store):
            return dg.SkipReason(f"not restarted: {faults}")
        return _mend(
            context, flow, jobs.connect, connect, status, _Restarts(count=before.count + 1, at=now, examined=now)
        )

    return connector


def _mend(
    context: dg.SensorEvaluationContext,
    flow: Flow,
    job: Job,
    connect: Connectors,
    status: ConnectorStatus,
    after: _Restarts,
) -> Tick:
    """Restart what has failed; where that can't be, launch a run of the topic, which makes the connector anew."""
    if not connect.can_restart(status):
        context.log.warning(f"{_failure(status)}: a run of the topic makes it anew")
        tick = launch(context, job, f"connector:{flow.connector}:{after.at:.0f}")
        if isinstance(tick, dg.SensorResult):
            context.update_cursor(after.model_dump_json())
        return tick
    restarted = connect.restart_failed(flow.connector)
    context.update_cursor(after.model_dump_json())
    tasks = f"tasks {list(restarted)} of {flow.connector}" if restarted else flow.connector
    told = f"restarted {tasks} ({_failure(status)}); next restart not before {pause(after.count)} s"
    context.log.warning(told)
    return dg.SkipReason(told)


def _faults(flow: Flow, postgres: Postgres, kafka: Kafka, connect: Connectors, store: ObjectStore) -> str:
    """What breaks the connector's stream, as the stages say it; empty where nothing does."""
    try:
        stream_continuity.require_whole(flow, flow.at_source(postgres), kafka, connect, location(store).store())
    except SourceBrokenError as error:
        return error.user_message
    return ""


def _failure(status: ConnectorStatus) -> str:
    causes = "; ".join(task.cause for task in status.failed_tasks)
    return f"task failed: {causes}" if causes else str(status)
