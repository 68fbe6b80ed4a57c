"""Checks of the source: each SQL file of `source.checks` must return no row, and TRUNCATE must be rejected."""

from pathlib import PurePath

import dagster as dg

from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.checks.light_check import LightCheck, light_check
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.postgres.resource import Postgres

_MAX_SHOWN = 10


def build(pipeline: Pipeline) -> list[dg.AssetChecksDefinition]:
    """Return a check for each SQL file, on the first table's source asset, and a TRUNCATE check for each table."""
    truncate = [] if pipeline.polled else [check.definition for table in pipeline.tables for check in light(table)]
    return [*(_check(pipeline, file) for file in pipeline.spec.source.checks), *truncate]


def _check(pipeline: Pipeline, file: str) -> dg.AssetChecksDefinition:
    sql = pipeline.sql(file, "source.checks")

    @dg.asset_check(
        asset=pipeline.tables[0].key("source"),
        name=PurePath(file).stem,
        description=f"{file} returns no row from the source.",
        metadata={**tiers.SCHEDULED, "sql": dg.MetadataValue.md(f"```sql\n{sql}\n```")},
        op_tags=step_priority.LAKE,
    )
    def no_rows(postgres: Postgres) -> dg.AssetCheckResult:
        with pipeline.source_postgres(postgres).connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            faults = cursor.fetchmany(_MAX_SHOWN)
            found = cursor.rowcount
        return dg.AssetCheckResult(
            passed=found == 0,
            metadata={"faults": found, "first": dg.MetadataValue.json([list(map(str, f)) for f in faults])},
        )

    return no_rows


def light(table: PipelineTable) -> list[LightCheck]:
    """Return the check of a table's source asset."""
    pipeline = table.pipeline

    @light_check(
        asset=table.key("source"),
        description="A trigger on the table and its partitions rejects TRUNCATE, which would write no change events.",
        blocking=True,
        op_tags=step_priority.STREAM,
    )
    def truncate_refused(postgres: Postgres) -> dg.AssetCheckResult:
        found = pipeline.source_postgres(postgres).truncatable(pipeline.spec.source.schema_, table.name)
        return dg.AssetCheckResult(
            passed=not found,
            metadata={
                "unguarded": dg.MetadataValue.json([f"{schema}.{name}" for schema, name in found]),
                "remedy": f"materialise {table.asset('source')}; if it was truncated, run `cdc-lake resnapshot "
                f"{pipeline.name}`",
            },
        )

    return [truncate_refused]
