"""The sensor that restarts failed connector tasks with growing pauses, and checks that the stream is complete."""

import time

import dagster as dg
from pydantic import BaseModel

from cdc_lake.contract.errors import SourceBrokenError
from cdc_lake.pipeline.automation.jobs import Job, Jobs
from cdc_lake.pipeline.automation.run_requests import BACKOFF_SECONDS, Tick, backoff, launch
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.source_health import stream_continuity
from resources.connect.connector_interface import FAILED, Connectors, ConnectorStatus
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres

_STREAM_CHECK_SECONDS = 30


class _Restarts(BaseModel):
    """The connector sensor's cursor.

    `count` is the number of restarts, `at` the time of the last one, and `examined` the time of the last check of the
    stream, both in seconds since 1970.
    """

    count: int = 0
    at: float = 0.0
    examined: float = 0.0


def build(pipeline: Pipeline, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    """Return the sensor of a pipeline, which runs every `seconds`."""

    @dg.sensor(
        name=f"{pipeline.name}_connector",
        job=jobs.definitions[jobs.connect.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Restarts failed tasks of {pipeline.connector} with growing pauses, and checks that its stream is "
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
        status = connect.status(pipeline.connector)
        if status is None:
            return dg.SkipReason(f"there is no connector {pipeline.connector} yet")
        now = time.time()
        previous = _Restarts.model_validate_json(context.cursor) if context.cursor else _Restarts()
        if status.state != FAILED and not status.failed_tasks:
            # A task that fails again soon after its restart must not reset the pauses.
            if status.is_running() and now >= previous.at + BACKOFF_SECONDS[-1]:
                previous = _Restarts(examined=previous.examined)
            if now >= previous.examined + _STREAM_CHECK_SECONDS:
                if faults := _faults(pipeline, pipeline.source_postgres(postgres), kafka, connect, store):
                    return dg.SkipReason(faults)
                previous = previous.model_copy(update={"examined": now})
            context.update_cursor(previous.model_dump_json())
            return dg.SkipReason(f"{pipeline.connector} is {status.state}, no task has failed")
        wait = previous.at + backoff(previous.count) - now if previous.count else 0
        if wait > 0:
            return dg.SkipReason(f"{_failure(status)}; next restart in {wait:.0f} s")
        if faults := _faults(pipeline, pipeline.source_postgres(postgres), kafka, connect, store):
            return dg.SkipReason(f"not restarted: {faults}")
        return _restart(
            context, pipeline, jobs.connect, connect, status, _Restarts(count=previous.count + 1, at=now, examined=now)
        )

    return connector


def _restart(
    context: dg.SensorEvaluationContext,
    pipeline: Pipeline,
    job: Job,
    connect: Connectors,
    status: ConnectorStatus,
    after: _Restarts,
) -> Tick:
    """Restart the failed connector or tasks; if that is impossible, launch a run that re-creates the connector."""
    if not connect.can_restart(status):
        context.log.warning(f"{_failure(status)}: it cannot be restarted; a run of the topic re-creates it")
        tick = launch(context, job, f"connector:{pipeline.connector}:{after.at:.0f}")
        if isinstance(tick, dg.SensorResult):
            context.update_cursor(after.model_dump_json())
        return tick
    restarted = connect.restart_failed(pipeline.connector)
    context.update_cursor(after.model_dump_json())
    noun = "task" if len(restarted) == 1 else "tasks"
    tasks = f"{noun} {', '.join(map(str, restarted))} of {pipeline.connector}" if restarted else pipeline.connector
    message = f"restarted {tasks} ({_failure(status)}); next restart in {backoff(after.count)} s at the earliest"
    context.log.warning(message)
    return dg.SkipReason(message)


def _faults(pipeline: Pipeline, postgres: SourcePostgres, kafka: Kafka, connect: Connectors, store: ObjectStore) -> str:
    """Return the error that the stages would raise for the connector's stream; "" if the stream is complete."""
    try:
        stream_continuity.require_no_faults(pipeline, postgres, kafka, connect, location(store).store())
    except SourceBrokenError as error:
        return error.user_message
    return ""


def _failure(status: ConnectorStatus) -> str:
    causes = "; ".join(task.cause for task in status.failed_tasks)
    return f"task failed: {causes}" if causes else str(status)
