"""Checks of a polled table: polls use an index, miss no transaction, and write to the topic of all earlier polls."""

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.checks.light_check import LightCheck, light_check
from cdc_lake.pipeline.operations import polling
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres


def build(table: PipelineTable) -> list[dg.AssetChecksDefinition]:
    """Return the checks of the source and topic assets."""
    return [*(check.definition for check in light(table)), _polls_continuous(table)]


def light(table: PipelineTable) -> list[LightCheck]:
    """Return the checks that the health sensor also evaluates."""
    pipeline, poll = table.pipeline, table.poll
    names = [name for name in (poll.timestamp, poll.incrementing) if name]

    @light_check(
        asset=table.key("source"),
        description=(
            f"{table.polled_table} has an index on {' and on '.join(names)}: without one, each poll reads the whole "
            "table."
        ),
        metadata=tiers.LATENESS,
        op_tags=step_priority.STREAM,
    )
    def polled_column_indexed(postgres: Postgres) -> dg.AssetCheckResult:
        schema, database = pipeline.spec.source.schema_, pipeline.source_postgres(postgres)
        relation = (schema, table.polled_table)
        columns = polled_source.table_columns(table)
        missing = [name for name, column in columns.items() if not (column and database.has_index(*relation, column))]
        remedy = "; ".join(
            f'CREATE INDEX CONCURRENTLY ON "{schema}"."{table.polled_table}" ("{column}")'
            if (column := columns[name])
            else f"{poll.sql} computes {name}: select a column of {table.polled_table} instead, if it shows each change"
            for name in missing
        )
        return dg.AssetCheckResult(
            passed=not missing,
            severity=dg.AssetCheckSeverity.WARN,  # without an index, polls are slow but correct
            metadata={"without_index": dg.MetadataValue.json(missing), "remedy": remedy or "nothing to do"},
        )

    @light_check(
        asset=table.key("source"),
        description=(
            "The login sees the transactions of all users, and no transaction is prepared: polls advance, and miss no "
            "transaction that commits late."
        ),
        metadata=tiers.LATENESS,
        op_tags=step_priority.STREAM,
    )
    def transactions_visible(postgres: Postgres) -> dg.AssetCheckResult:
        found = pipeline.source_postgres(postgres).transactions_bound()
        return dg.AssetCheckResult(
            passed=found.prepared is None,
            metadata={
                "bound": dg.MetadataValue.timestamp(found.at),
                "held_back_by": found.held_back_by or "no session",
                "prepared_transaction": found.prepared or "none",
            },
        )

    return [polled_column_indexed, transactions_visible]


def _polls_continuous(table: PipelineTable) -> dg.AssetChecksDefinition:
    pipeline = table.pipeline

    @dg.asset_check(
        asset=table.key("topic"),
        description="All polls were sent to this topic, and the server is that of the current epoch.",
        blocking=True,
        op_tags=step_priority.STREAM,
    )
    def polls_continuous(postgres: Postgres, kafka: Kafka, store: ObjectStore) -> dg.AssetCheckResult:
        bucket = location(store).store()
        chain = polling.polls(table, bucket)
        try:
            last = chain.read()
            if last is None:
                return dg.AssetCheckResult(passed=False, metadata={"faults": "the table was never polled"})
            chain.require_topic(last.poll, polling.topic_id(table, kafka))
            epoch = polling.current_epoch(table, pipeline.source_postgres(postgres), bucket)
        except ContractError as error:
            return dg.AssetCheckResult(passed=False, metadata={"faults": error.user_message})
        return dg.AssetCheckResult(
            passed=True,
            metadata={"faults": "none", "poll": last.poll.number, "epoch": epoch.number},
        )

    return polls_continuous
