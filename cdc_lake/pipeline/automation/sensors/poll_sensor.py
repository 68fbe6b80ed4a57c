"""The sensor that launches polls of the tables that have a row in their next window.

If a table has no such row, the sensor moves the end of its last poll to the bound, so that an idle source counts as
read up to the bound.
"""

import dagster as dg

from cdc_lake.contract.errors import RaceLostError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.table import lease
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.run_requests import Pending, Tick
from cdc_lake.pipeline.automation.sensors.parallel_map import map_tables
from cdc_lake.pipeline.automation.sensors.table_runs import poll_name, request_poll
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations import polling
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres


def build(pipeline: Pipeline, jobs: Jobs) -> dg.SensorDefinition:
    """Return the sensor of a polled pipeline, which runs every `source.poll_seconds`."""
    every = pipeline.spec.source.poll_seconds

    @dg.sensor(
        name=poll_name(pipeline),
        job=jobs.definitions[jobs.poll.name],
        minimum_interval_seconds=every,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Polls the tables of {pipeline.name} with changed rows, every {every} s.",
    )
    def poll(context: dg.SensorEvaluationContext, postgres: Postgres, store: ObjectStore) -> Tick:
        source = pipeline.source_postgres(postgres)
        pending = map_tables(context, pipeline.tables, lambda table: _pending(table, source, store))
        return request_poll(context, jobs, pending).tick

    return poll


def _pending(table: PipelineTable, postgres: SourcePostgres, store: ObjectStore) -> Pending:
    try:
        return _position(table, postgres, store)
    except RaceLostError:
        return dg.SkipReason("a poll has begun meanwhile")


def _position(table: PipelineTable, postgres: SourcePostgres, store: ObjectStore) -> Pending:
    chain = polling.polls(table, location(store).store())
    last = chain.read()
    if last is None:
        return dg.SkipReason(f"never polled: materialise {table.asset('topic')} first")
    # Raises for another server, whose unchanged rows would move the bound past changes of the right one.
    epoch = polling.current_epoch(table, postgres, chain.store)
    if epoch.number != last.poll.epoch:
        return dg.SkipReason(f"epoch {epoch.number} begins: `cdc-lake resnapshot {table.pipeline.name}` polls all rows")
    if last.poll.state == "begun":
        if owner := lease.holder(chain.store, object_names.poll_lease_key(table.pipeline.name, table.name)):
            return dg.SkipReason(f"{owner} polls or reconciles the table")
        return f"poll:{table.topic}:{last.poll.topic_id}:begun-{last.poll.number}"
    bound = polled_source.bound(table, postgres, last.poll.upper)
    if polling.has_changes(table, postgres, last.poll.upper, bound):
        # A run that finds no row any more moves only the end of the last poll, and the next run needs another position.
        return f"poll:{table.topic}:{last.poll.topic_id}:after-{last.poll.number}-{last.poll.upper.at.isoformat()}"
    chain.advance(last, bound)
    return dg.SkipReason(f"no changed row up to {bound.at.isoformat(sep=' ', timespec='seconds')}")
