"""The sensor that reads S3 events from a queue, to launch runs sooner than the listing sensors would.

A message only shows which table may need a run: the sensor finds pending runs by listing, as the listing sensors do,
with the same position, run key and tags. Lost, repeated and reordered messages therefore only change when a run starts.
There is one sensor for all triggered pipelines, because the bucket has one queue. It exists if the profile has a
resource `queue`.

A message is deleted in the tick after the one that requested its run (or found that no run is needed): by then Dagster
has stored the request. A target whose run cannot be launched yet is kept in the cursor without its messages. The queue
delivers an unreadable message again, and finally moves it to its dead-letter queue.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import dagster as dg

from cdc_lake.contract.errors import UnreadableEventError
from cdc_lake.contract.plurals import counted
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.pending_runs import pending_adoption, pending_apply
from cdc_lake.pipeline.automation.run_requests import Pending, Tick, describe_skipped
from cdc_lake.pipeline.automation.sensors.parallel_map import is_outage, map_parallel, skip_reason
from cdc_lake.pipeline.automation.sensors.queue_cursor import QueueCursor, Target
from cdc_lake.pipeline.automation.sensors.table_runs import apply_name, request_apply, request_land
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.aws.sqs import Message, Sqs
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

NAME = "raw_events"
_EVERY_SECONDS = 5
_MAX_WAITING_MESSAGES = 500
"""The maximum number of messages in the cursor; further messages stay in the queue."""
_DEAD_LETTERS_EVERY_SECONDS = 300


def build(pipelines: Sequence[tuple[Pipeline, Jobs]], definitions: Mapping[str, Any]) -> dg.SensorDefinition:
    """Return the sensor of all triggered pipelines; `definitions` are the definitions of their jobs, by name."""
    tables = {(pipeline.name, table.name): table for pipeline, _ in pipelines for table in pipeline.tables}
    jobs_by_pipeline = {pipeline.name: jobs for pipeline, jobs in pipelines}

    @dg.sensor(
        name=NAME,
        jobs=[definitions[job.name] for jobs in jobs_by_pipeline.values() for job in (jobs.land, jobs.apply)],
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Launches landing and apply runs as soon as the queue reports new raw objects and manifests.",
    )
    def raw_events(context: dg.SensorEvaluationContext, queue: Sqs, kafka: Kafka, store: ObjectStore) -> Tick:
        cursor = QueueCursor.model_validate_json(context.cursor) if context.cursor else QueueCursor()
        for refused in queue.delete(cursor.done):
            context.log.warning(
                f"Cannot delete a message of {queue.queue_url}: {refused}. The queue will deliver it again."
            )
        cursor.done = []
        full = len(cursor.waiting_messages) >= _MAX_WAITING_MESSAGES
        if full:
            context.log.warning(
                f"runs are pending for {counted(len(cursor.waiting_messages), 'message')}: further messages stay in "
                f"{queue.queue_url}"
            )
        for message in queue.receive() if not full else ():
            try:
                cursor.add_message(message, store.bucket, tables.values())
            except UnreadableEventError as error:
                context.log.warning(_unreadable(queue, message, error))
        if time.time() >= cursor.looked_at + _DEAD_LETTERS_EVERY_SECONDS:
            cursor.looked_at = time.time()
            if warning := _dead_letters_warning(queue):
                context.log.warning(warning)
        # Drop targets of pipelines that were removed.
        cursor.resolve({target for target in cursor.pending_targets() if target[:2] not in tables})
        requests, skipped = _requests(context, cursor, tables, jobs_by_pipeline, kafka, store)
        context.update_cursor(cursor.model_dump_json())
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SkipReason(describe_skipped(skipped) or "no message reports a new object of a pipeline")

    return raw_events


def _requests(
    context: dg.SensorEvaluationContext,
    cursor: QueueCursor,
    tables: Mapping[tuple[str, str], PipelineTable],
    jobs_by_pipeline: Mapping[str, Jobs],
    kafka: Kafka,
    store: ObjectStore,
) -> tuple[list[dg.RunRequest], dict[str, str]]:
    """Request the runs that the targets' own sensors would request; return why the other targets have no request.

    Resolves the targets in the cursor whose runs are requested or not needed, and defers the others.
    """
    requests: list[dg.RunRequest] = []
    skipped: dict[str, str] = {}
    launched: set[tuple[str, str]] = set()
    targets = sorted(cursor.pending_targets(), key=_run)
    outcomes = map_parallel(targets, lambda target: _pending(target, tables[target[:2]], kafka, store), fatal=is_outage)
    outcome_of = dict(zip(targets, outcomes, strict=True))
    for (pipeline, purpose), of_run in groupby(targets, key=_run):
        pending: dict[str, Pending] = {}
        for target in of_run:
            if target[:2] in launched:
                skipped["/".join(target)] = "this tick already requests a run of this table"
                cursor.defer(target)
                continue
            outcome = outcome_of[target]
            if isinstance(outcome, Exception):  # one table's error must not stop the others
                skipped["/".join(target)] = skip_reason(context, tables[target[:2]], outcome).skip_message or ""
                cursor.keep_one_message(target)
            else:
                pending[target[1]] = outcome
        request_runs = request_apply if purpose == "apply" else request_land
        found = request_runs(context, jobs_by_pipeline[pipeline], pending)
        requests += found.requests
        for table, position in pending.items():
            target = (pipeline, table, purpose)
            if table in found.skipped and not isinstance(position, dg.SkipReason):
                cursor.defer(target)  # its run must wait
            else:
                cursor.resolve({target})
        launched |= {(pipeline, table) for table in pending if table not in found.skipped}
        skipped |= {f"{pipeline}/{table}/{purpose}": reason for table, reason in found.skipped.items()}
    return requests, skipped


def _pending(target: Target, table: PipelineTable, kafka: Kafka, store: ObjectStore) -> Pending:
    if target[2] == "apply":
        return pending_apply(table, store, apply_name(table.pipeline))
    sink = landing_modes.sink(table)
    if sink is None:
        return dg.SkipReason("the land job now lands this table")
    return pending_adoption(table, sink, kafka, store)


def _run(target: Target) -> tuple[str, Literal["land", "apply"]]:
    """Return pipeline and purpose of a target's run; "apply" sorts before "land"."""
    return target[0], target[2]


def _unreadable(queue: Sqs, message: Message, error: UnreadableEventError) -> str:
    return (
        f"Cannot read message {message.id} of {queue.queue_url} as an S3 event: {error.user_message}. It stays in the "
        f"queue until SQS moves it to the dead-letter queue (receive count: {message.receipts}). Find and stop its "
        "sender."
    )


def _dead_letters_warning(queue: Sqs) -> str | None:
    """Return a warning if there is no dead-letter queue, or if it contains messages."""
    found = queue.dead_letters()
    if found is None:
        return (
            f"{queue.queue_url} has no dead-letter queue: unreadable messages are delivered again until they expire. "
            "Give it a redrive policy."
        )
    if not found.messages:
        return None
    return (
        f"Dead-letter queue {found.arn} is not empty (messages: {found.messages}): they could not be handled in "
        f"{found.after} receipts. Listing finds their objects. Read the messages, fix their sender, and "
        "purge or redrive them."
    )
