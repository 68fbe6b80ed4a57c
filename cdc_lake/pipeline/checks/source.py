"""Checks at the source: SQL files whose every row is a fault (`source.checks` in the YAML)."""

from pathlib import PurePath

import dagster as dg

from cdc_lake.pipeline.flow import Flow
from resources.postgres import Postgres

_SHOWN = 10


def build(flow: Flow) -> list[dg.AssetChecksDefinition]:
    """One check for each SQL file, on the first table's source asset."""
    return [_check(flow, file) for file in flow.spec.source.checks]


def _check(flow: Flow, file: str) -> dg.AssetChecksDefinition:
    sql = flow.sql(file, "source.checks")

    @dg.asset_check(
        asset=flow.tables[0].key("source"),
        name=PurePath(file).stem,
        description=f"{file} finds no row at the source.",
        metadata={"sql": dg.MetadataValue.md(f"```sql\n{sql}\n```")},
    )
    def no_rows(postgres: Postgres) -> dg.AssetCheckResult:
        with flow.at_source(postgres).connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            faults = cursor.fetchmany(_SHOWN)
            found = cursor.rowcount
        return dg.AssetCheckResult(
            passed=found == 0,
            metadata={"faults": found, "first": dg.MetadataValue.json([list(map(str, f)) for f in faults])},
        )

    return no_rows
