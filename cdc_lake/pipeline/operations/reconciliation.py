"""Reconcile a polled table: send deletes for the rows of the lake that the source no longer has."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lake.contract.schema import captured_schema
from cdc_lake.jobs.poll import reconcile as job
from cdc_lake.jobs.poll.reconcile import ReconcileReport, ReconcileSpec
from cdc_lake.pipeline.operations import polling
from cdc_lake.pipeline.operations.polling import PollSystems, polling_lease, retry_races, topic_id
from cdc_lake.pipeline.operations.verification_steps import lake_state
from cdc_lake.pipeline.parquet_target.boundary import current_boundary
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source


@dataclass(frozen=True)
class ReconcileResult:
    """The reconciliation's number in the sequence of polls, and the job's report.

    Both are None if no record is in the lake yet.
    """

    number: int | None
    report: ReconcileReport | None


def reconcile(table: PipelineTable, systems: PollSystems) -> ReconcileResult:
    """Send a delete record for each key that is in the lake but not in the source.

    The records are landed and applied like those of a poll.

    Raises SourceBrokenError before the first poll and if the server is another one, ResourceError for a standby,
    LeaseHeldError, and what the job raises.
    """
    pipeline, kafka = table.pipeline, systems.kafka
    with polling_lease(table, systems) as store:
        # On another server, or on a standby that is behind, rows would seem to be deleted.
        polling.current_epoch(table, systems.postgres, store)
        systems.postgres.transactions_bound()
        lake = lake_state(store, table)
        if lake is None:
            return ReconcileResult(None, None)
        chain, topic = polling.polls(table, store), topic_id(table, kafka)
        poll = retry_races(lambda: chain.begin_reconcile(topic))
        applying = table.upsert_spec(systems.location, owner=systems.owner)
        report: ReconcileReport = systems.run(
            job.run,
            ReconcileSpec(
                access=polled_source.access(systems.postgres),
                rows=polled_source.rows(table),
                location=systems.location,
                pipeline=pipeline.name,
                topic=table.topic,
                uri=applying.uri(),
                versions=captured_schema.require_versions(store, pipeline.name, table.source_table),
                lake=lake,
                kafka=polling.sink_options(kafka),
                number=poll.poll.number,
                upper=poll.poll.upper,
                values=applying.values,
                boundary=current_boundary(store, table, kafka),
                transforms=table.landing_transforms,
                record_key=table.record_key,
            ),
        )
        chain.complete(poll)
        return ReconcileResult(poll.poll.number, report)
