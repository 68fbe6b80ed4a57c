"""The sensor that hears of new objects from a queue: S3's events launch what the listing sensors would find later.

A message is a hint where to look, no more: what is due is found by listing, as the listing sensors do, and has the same
position, run key and tags. So lost, repeated and reordered messages change nothing but the time. One sensor for all
pipelines, since a queue is of a bucket. It exists where the profile has a resource `queue`.

A message is deleted in the tick after the one that requested its run (or found nothing due any more): Dagster has kept
the request by then. What is due and can't be launched yet is kept in the cursor without its messages. One that can't be
read comes again, and in the end goes to the queue's dead-letter queue.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from cdc_lake.contract.errors import ContractError, UnreadableEventError
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.pending_runs import Due, to_adopt, to_apply
from cdc_lake.pipeline.automation.queue_cursor import Cursor, Target
from cdc_lake.pipeline.automation.run_requests import Tick
from cdc_lake.pipeline.automation.sensors import apply_name, launch_apply, launch_land
from cdc_lake.pipeline.naming import Flow, TableFlow
from cdc_lake.pipeline.operations import landing_modes
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.sqs import Message, Sqs

NAME = "raw_events"
_EVERY_SECONDS = 5
_HEARD_AT_MOST = 500
"""Messages that wait for their runs are kept in the cursor; more of them stay in the queue."""
_DEAD_LETTERS_EVERY_SECONDS = 300


def build(pipelines: Sequence[tuple[Flow, Jobs]], definitions: Mapping[str, Any]) -> dg.SensorDefinition:
    """The sensor of all pipelines; `definitions` are those of their jobs, by name."""
    tables = {(flow.name, table.name): table for flow, _ in pipelines for table in flow.tables}
    jobs_of = {flow.name: jobs for flow, jobs in pipelines}

    @dg.sensor(
        name=NAME,
        jobs=[definitions[job.name] for jobs in jobs_of.values() for job in (jobs.land, jobs.apply)],
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Launches what new raw objects and manifests call for, as soon as the queue tells of them.",
    )
    def raw_events(context: dg.SensorEvaluationContext, queue: Sqs, kafka: Kafka, store: ObjectStore) -> Tick:
        cursor = Cursor.model_validate_json(context.cursor) if context.cursor else Cursor()
        for refused in queue.delete(cursor.done):
            context.log.warning(f"a message of {queue.queue_url} was not deleted ({refused}): it will come again")
        cursor.done = []
        full = len(cursor.heard) >= _HEARD_AT_MOST
        if full:
            context.log.warning(f"{len(cursor.heard)} messages wait for their runs: the next stay in {queue.queue_url}")
        for message in queue.receive() if not full else ():
            try:
                cursor.hear(message, store.bucket, tables.values())
            except UnreadableEventError as error:
                context.log.warning(_unreadable(queue, message, error))
        if time.time() >= cursor.looked_at + _DEAD_LETTERS_EVERY_SECONDS:
            cursor.looked_at = time.time()
            if said := _dead_letters(queue):
                context.log.warning(said)
        wanted = cursor.wanted()
        cursor.settle({target for target in wanted if target[:2] not in tables})  # of a pipeline that was taken out
        ticks: dict[Target, Tick] = {}
        # Sorted, so that "apply" comes before "land": one run of a table is requested in a tick.
        for target in sorted(cursor.wanted()):
            if isinstance(ticks.get((*target[:2], "apply")), dg.SensorResult):
                ticks[target] = dg.SkipReason("a run of this table is requested now")
                cursor.wait(target)
                continue
            try:
                due = _due(target, tables[target[:2]], kafka, store)
            except ContractError as error:  # of one table: the others go on, and its own sensor fails with it
                ticks[target] = dg.SkipReason(error.user_message)
                cursor.hold_one(target)
                continue
            ticks[target] = due if isinstance(due, dg.SkipReason) else _launch(context, target, tables, jobs_of, due)
            if isinstance(due, dg.SkipReason) or isinstance(ticks[target], dg.SensorResult):
                cursor.settle({target})
            else:
                cursor.wait(target)
        context.update_cursor(cursor.model_dump_json())
        return _told(ticks)

    return raw_events


def _due(target: Target, table: TableFlow, kafka: Kafka, store: ObjectStore) -> Due:
    if target[2] == "apply":
        return to_apply(table, store, apply_name(table))
    sink = landing_modes.sink(table)
    return dg.SkipReason("the land job lands it now") if sink is None else to_adopt(table, sink, kafka, store)


def _launch(
    context: dg.SensorEvaluationContext,
    target: Target,
    tables: Mapping[tuple[str, str], TableFlow],
    jobs_of: Mapping[str, Jobs],
    position: str,
) -> Tick:
    """The run that the table's own sensor would launch."""
    launching = launch_apply if target[2] == "apply" else launch_land
    return launching(context, tables[target[:2]], jobs_of[target[0]], position)


def _told(ticks: dict[Target, Tick]) -> Tick:
    """All requests of a tick; without one, why."""
    results = [tick for tick in ticks.values() if isinstance(tick, dg.SensorResult)]
    if results:
        return dg.SensorResult(run_requests=[request for each in results for request in each.run_requests or ()])
    why = [f"{'/'.join(on)}: {tick.skip_message}" for on, tick in ticks.items() if isinstance(tick, dg.SkipReason)]
    return dg.SkipReason("; ".join(why) or "no message tells of anything new")


def _unreadable(queue: Sqs, message: Message, error: UnreadableEventError) -> str:
    return (
        f"message {message.id} of {queue.queue_url} is none of S3's: {error.user_message}. It is left there, and goes "
        f"to the dead-letter queue after its last receipt (this was number {message.receipts})"
    )


def _dead_letters(queue: Sqs) -> str | None:
    """What there is to say of the dead-letter queue; without one, what can't be read comes again until it expires."""
    found = queue.dead_letters()
    if found is None:
        return f"{queue.queue_url} has no dead-letter queue: what can't be handled comes again until it expires"
    if not found.messages:
        return None
    return (
        f"{found.messages} messages lie in {found.arn}: nobody could handle them in {found.after} receipts. Listing "
        "finds the objects that they tell of; look at what they say, mend what sends them, and purge or redrive them"
    )
