"""Sensors: what is new in Kafka launches raw, what is landed launches the rest, a failed task is restarted.

Here: when to launch. Not here: what a launch does (stages/).
"""

import json
import time

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.jobs import upsert
from cdc_lake.pipeline import stream
from cdc_lake.pipeline.flow import Flow, TableFlow, location
from resources.kafka import Kafka
from resources.kafka_connect import KafkaConnect
from resources.object_store import ObjectStore

_EVERY_SECONDS = 5
_BACKOFF_SECONDS = (5, 15, 60, 300)
_RUNNING = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]
_Tick = dg.SensorResult | dg.SkipReason


def build(flow: Flow) -> list[dg.SensorDefinition]:
    """The sensors of a pipeline: one on its connector, two on each table."""
    per_table = [sensor for table in flow.tables for sensor in (_landing(table), _applying(table))]
    return [_connector(flow), *per_table]


def _landing(table: TableFlow) -> dg.SensorDefinition:
    flow = table.pipeline
    landing = flow.spec.landing

    @dg.sensor(
        name=f"{flow.name}_{table.name}_land",
        target=dg.AssetSelection.assets(table.key("raw")),
        minimum_interval_seconds=_EVERY_SECONDS,
        description=f"Lands {table.topic} at {landing.flush_records} records or after {landing.flush_seconds} s.",
    )
    def land(context: dg.SensorEvaluationContext, kafka: Kafka, store: ObjectStore) -> _Tick:
        try:
            state = stream.topic_state(kafka, table)
        except ContractError as error:
            return dg.SkipReason(error.user_message)
        head, behind = stream.unlanded(location(store).store(), table, state)
        if behind == 0:
            context.update_cursor("")
            return dg.SkipReason("everything is landed")
        number = 0 if head is None else head.number
        seen = json.loads(context.cursor) if context.cursor else {}
        since = seen["since"] if seen.get("manifest") == number else time.time()
        context.update_cursor(json.dumps({"manifest": number, "since": since}))
        waited = time.time() - since
        if behind < landing.flush_records and waited < landing.flush_seconds:
            return dg.SkipReason(f"{behind} offsets wait since {waited:.0f} s")
        return _launch(context, flow, "land", f"{table.topic}:{state.topic_id}:after-manifest-{number}")

    return land


def _applying(table: TableFlow) -> dg.SensorDefinition:
    flow = table.pipeline
    downstream = dg.AssetSelection.assets(table.key("lake")).downstream()

    @dg.sensor(
        name=f"{flow.name}_{table.name}_apply",
        target=downstream,
        minimum_interval_seconds=_EVERY_SECONDS,
        description=f"Applies new manifests of {table.topic} to the lake table, then makes what follows.",
    )
    def apply(context: dg.SensorEvaluationContext, store: ObjectStore) -> _Tick:
        where = location(store)
        new = upsert.new_manifests(where.store(), table.upsert_spec(where, owner=context.sensor_name))
        if not new:
            return dg.SkipReason("everything that is landed is applied")
        return _launch(context, flow, "apply", f"{table.topic}:{new[-1].topic_id}:manifest-{new[-1].number}")

    return apply


def _connector(flow: Flow) -> dg.SensorDefinition:
    @dg.sensor(
        name=f"{flow.name}_connector",
        target=dg.AssetSelection.assets(*(table.key("topic") for table in flow.tables)),
        minimum_interval_seconds=_EVERY_SECONDS,
        description=f"Restarts failed tasks of {flow.connector}, waiting longer each time.",
    )
    def connector(context: dg.SensorEvaluationContext, connect: KafkaConnect) -> _Tick:
        status = connect.status(flow.connector)
        if status is None:
            return dg.SkipReason(f"there is no connector {flow.connector} yet")
        if not status.failed_tasks:
            if status.is_running():
                context.update_cursor("")
            return dg.SkipReason(f"{flow.connector} is {status.state}, no task has failed")
        seen = json.loads(context.cursor) if context.cursor else {"restarts": 0, "next": 0.0}
        if time.time() < seen["next"]:
            return dg.SkipReason(f"task failed; next restart in {seen['next'] - time.time():.0f} s")
        restarted = connect.restart_failed(flow.connector)
        pause = _BACKOFF_SECONDS[min(seen["restarts"], len(_BACKOFF_SECONDS) - 1)]
        context.update_cursor(json.dumps({"restarts": seen["restarts"] + 1, "next": time.time() + pause}))
        causes = "; ".join(task.cause for task in status.failed_tasks)
        context.log.warning(f"restarted tasks {list(restarted)} of {flow.connector}: {causes}")
        return dg.SkipReason(
            f"restarted tasks {list(restarted)} of {flow.connector} (cause: {causes}); next in {pause} s"
        )

    return connector


def _launch(context: dg.SensorEvaluationContext, flow: Flow, what: str, run_key: str) -> _Tick:
    """One run at a time of each sensor: a further one would only wait for the lease or find nothing."""
    tag = {"cdc_lake/sensor": context.sensor_name}
    busy = context.instance.get_runs(dg.RunsFilter(tags=tag, statuses=_RUNNING), limit=1)
    if busy:
        return dg.SkipReason(f"run {busy[0].run_id} of this sensor is under way")
    # A run that failed must be tried again although nothing new arrived: the attempt is part of the key.
    failed = context.instance.get_runs_count(
        dg.RunsFilter(tags={**tag, "cdc_lake/position": run_key}, statuses=[dg.DagsterRunStatus.FAILURE])
    )
    request = dg.RunRequest(
        run_key=f"{what}:{run_key}:{failed}", tags={**tag, "cdc_lake/position": run_key, "cdc_lake/pipeline": flow.name}
    )
    return dg.SensorResult(run_requests=[request])
