"""The sensor that reads S3 events from a queue, to launch runs sooner than the listing sensors would.

A message is only a hint which table to examine: the sensor finds pending runs by listing, as the listing sensors do,
with the same position, run key and tags. Lost, repeated and reordered messages therefore change only the time. There is
one sensor for all pipelines, because the bucket has one queue. It exists if the profile has a resource `queue`.

A message is deleted in the tick after the one that requested its run (or found that no run is needed): by then Dagster
has stored the request. A target whose run cannot be launched yet is kept in the cursor without its messages. The queue
delivers an unreadable message again, and finally moves it to its dead-letter queue.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from cdc_lake.contract.errors import ContractError, UnreadableEventError
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.pending_runs import Pending, pending_adoption, pending_apply
from cdc_lake.pipeline.automation.queue_cursor import Cursor, Target
from cdc_lake.pipeline.automation.run_requests import Tick
from cdc_lake.pipeline.automation.sensors import apply_name, launch_apply, launch_land
from cdc_lake.pipeline.naming import Flow, TableFlow
from cdc_lake.pipeline.operations import landing_modes
from resources.aws.sqs import Message, Sqs
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

NAME = "raw_events"
_EVERY_SECONDS = 5
_MAX_WAITING_MESSAGES = 500
"""The maximum number of messages in the cursor; further messages stay in the queue."""
_DEAD_LETTERS_EVERY_SECONDS = 300


def build(pipelines: Sequence[tuple[Flow, Jobs]], definitions: Mapping[str, Any]) -> dg.SensorDefinition:
    """Return the sensor of all pipelines; `definitions` are the definitions of their jobs, by name."""
    tables = {(flow.name, table.name): table for flow, _ in pipelines for table in flow.tables}
    jobs_by_pipeline = {flow.name: jobs for flow, jobs in pipelines}

    @dg.sensor(
        name=NAME,
        jobs=[definitions[job.name] for jobs in jobs_by_pipeline.values() for job in (jobs.land, jobs.apply)],
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Launches landing and apply runs as soon as the queue reports new raw objects and manifests.",
    )
    def raw_events(context: dg.SensorEvaluationContext, queue: Sqs, kafka: Kafka, store: ObjectStore) -> Tick:
        cursor = Cursor.model_validate_json(context.cursor) if context.cursor else Cursor()
        for refused in queue.delete(cursor.done):
            context.log.warning(
                f"Cannot delete a message of {queue.queue_url}: {refused}. The queue will deliver it again."
            )
        cursor.done = []
        full = len(cursor.heard) >= _MAX_WAITING_MESSAGES
        if full:
            context.log.warning(
                f"{len(cursor.heard)} messages wait for their runs: further messages stay in {queue.queue_url}"
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
        ticks: dict[Target, Tick] = {}
        # Sorted, so that "apply" comes before "land": a tick requests at most one run of a table.
        for target in sorted(cursor.pending_targets()):
            if isinstance(ticks.get((*target[:2], "apply")), dg.SensorResult):
                ticks[target] = dg.SkipReason("this tick already requests a run of this table")
                cursor.defer(target)
                continue
            try:
                pending = _pending(target, tables[target[:2]], kafka, store)
            except ContractError as error:  # one table's error must not stop the others; its own sensor reports it
                ticks[target] = dg.SkipReason(error.user_message)
                cursor.keep_one_message(target)
                continue
            ticks[target] = (
                pending
                if isinstance(pending, dg.SkipReason)
                else _launch(context, target, tables, jobs_by_pipeline, pending)
            )
            if isinstance(pending, dg.SkipReason) or isinstance(ticks[target], dg.SensorResult):
                cursor.resolve({target})
            else:
                cursor.defer(target)
        context.update_cursor(cursor.model_dump_json())
        return _combined(ticks)

    return raw_events


def _pending(target: Target, table: TableFlow, kafka: Kafka, store: ObjectStore) -> Pending:
    if target[2] == "apply":
        return pending_apply(table, store, apply_name(table))
    sink = landing_modes.sink(table)
    if sink is None:
        return dg.SkipReason("the land job now lands this table")
    return pending_adoption(table, sink, kafka, store)


def _launch(
    context: dg.SensorEvaluationContext,
    target: Target,
    tables: Mapping[tuple[str, str], TableFlow],
    jobs_by_pipeline: Mapping[str, Jobs],
    position: str,
) -> Tick:
    """Request the run that the table's own sensor would request."""
    launch = launch_apply if target[2] == "apply" else launch_land
    return launch(context, tables[target[:2]], jobs_by_pipeline[target[0]], position)


def _combined(ticks: dict[Target, Tick]) -> Tick:
    """Return all run requests of a tick; if there are none, the reasons."""
    results = [tick for tick in ticks.values() if isinstance(tick, dg.SensorResult)]
    if results:
        return dg.SensorResult(run_requests=[request for each in results for request in each.run_requests or ()])
    reasons = [f"{'/'.join(on)}: {tick.skip_message}" for on, tick in ticks.items() if isinstance(tick, dg.SkipReason)]
    return dg.SkipReason("; ".join(reasons) or "no message reports a new object of a pipeline")


def _unreadable(queue: Sqs, message: Message, error: UnreadableEventError) -> str:
    return (
        f"Cannot read message {message.id} of {queue.queue_url}: it is not an S3 event: {error.user_message}. It stays "
        f"there, and goes to the dead-letter queue after its last receipt (this was number {message.receipts})."
    )


def _dead_letters_warning(queue: Sqs) -> str | None:
    """Return a warning if there is no dead-letter queue, or if it contains messages."""
    found = queue.dead_letters()
    if found is None:
        return f"{queue.queue_url} has no dead-letter queue: unreadable messages are delivered again until they expire"
    if not found.messages:
        return None
    return (
        f"Dead-letter queue {found.arn} is not empty (messages: {found.messages}): they could not be handled in "
        f"{found.after} receipts. Listing finds their objects. Read them, fix their sender, and purge or redrive them."
    )
