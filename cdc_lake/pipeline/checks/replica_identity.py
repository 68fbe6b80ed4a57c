"""Check that the replica identity is FULL: otherwise UPDATE events lack unchanged TOASTed values.

A table with a generated column that is not published must have the identity DEFAULT instead.
"""

import dagster as dg

from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.checks.light_check import LightCheck, light_check
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health.omitted_columns import replica_identity
from resources.postgres.resource import Postgres


def light(table: PipelineTable) -> list[LightCheck]:
    """Return the check of a topic asset."""
    pipeline = table.pipeline

    @light_check(
        asset=table.key("topic"),
        description=f"The replica identity of {table.source_table} is FULL: change events contain the whole row. If a "
        "generated column is not published, it is DEFAULT: PostgreSQL 18 would reject UPDATE and DELETE otherwise.",
        blocking=True,
        op_tags=step_priority.STREAM,
    )
    def replica_identity_full(postgres: Postgres) -> dg.AssetCheckResult:
        source = pipeline.source_postgres(postgres)
        found = source.replica_identity(pipeline.spec.source.schema_, table.name)
        return dg.AssetCheckResult(
            passed=found == replica_identity(table, source),
            metadata={
                "replica_identity": found,
                "remedy": f"materialise {table.asset('source')}; earlier changes that lack a long value are "
                "completed from the lake, or become dead letters",
            },
        )

    return [replica_identity_full]
