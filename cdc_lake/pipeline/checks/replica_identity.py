"""Check that the replica identity is FULL: otherwise UPDATE events lack unchanged TOASTed values."""

import dagster as dg

from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.checks.light import LightCheck, light_check
from cdc_lake.pipeline.naming import TableFlow
from resources.postgres.resource import Postgres


def light(table: TableFlow) -> list[LightCheck]:
    """Return the check of a topic asset."""
    flow = table.pipeline

    @light_check(
        asset=table.key("topic"),
        description=f"The replica identity of {table.source_table} is FULL: change events contain the whole row.",
        blocking=True,
        op_tags=tiers.STREAM,
    )
    def replica_identity_full(postgres: Postgres) -> dg.AssetCheckResult:
        found = flow.source_postgres(postgres).replica_identity(flow.spec.source.schema_, table.name)
        return dg.AssetCheckResult(
            passed=found == "full",
            metadata={
                "replica_identity": found,
                "remedy": f"materialise {table.asset('source')}; earlier changes that lack a long value are "
                "completed from the lake, or become dead letters",
            },
        )

    return [replica_identity_full]
