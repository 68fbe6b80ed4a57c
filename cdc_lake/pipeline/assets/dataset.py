"""The dataset stage: a view in the catalog for each SQL file of the pipeline, for Athena and QuickSight."""

import hashlib
import os
from collections.abc import Sequence
from decimal import Decimal
from pathlib import PurePath

import dagster as dg
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import column_lineage, standard_metadata
from cdc_lake.pipeline.automation import dataset_refresh
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import upstream_checks
from cdc_lake.pipeline.naming import Flow
from resources.athena import Athena, QueryResult
from resources.glue.catalog import GlueCatalog, TableDefinition
from resources.object_store import ObjectStore

_NUMERIC = ("decimal", "double", "real", "float")


def build(flow: Flow, file: str, required: Sequence[dg.AssetCheckKey] = ()) -> dg.AssetsDefinition:
    """Return the dataset asset of one SQL file; it is not built while a `required` check fails."""
    name = PurePath(file).stem
    catalog = flow.catalog
    sql = flow.sql(file, "datasets")
    require_readable(flow, file, sql, os.environ.get("CDC_LAKE_PROFILE", "local"))
    version = hashlib.sha256(sql.encode()).hexdigest()[:12]

    @dg.asset(
        key=flow.key("dataset", name),
        deps=[table.key("lake") for table in flow.tables],
        # The SQL is in the description because Dagster's UI truncates it in the metadata table.
        description=f"View {catalog}.{name}, defined in {file}.\n\n```sql\n{sql}\n```",
        kinds={"athena", "sql", "view"},
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=flow.tags("dataset"),
        code_version=version,
        freshness_policy=flow.freshness_policy,
        metadata={"dagster/table_name": f"{catalog}.{name}"},
    )
    def dataset_asset(
        context: dg.AssetExecutionContext, athena: Athena, glue: GlueCatalog, store: ObjectStore
    ) -> dg.MaterializeResult[None]:
        bucket = location(store).store()
        upstream_checks.require_passed(context.instance, f"dataset {name}", required, bucket, flow.name)
        athena = athena.metered(catalog)
        commits = table_progress.lake_commits(bucket, flow)  # before the tables are read
        # A view keeps the columns and types that its tables had when it was created, also for `*`.
        tables = {table.name: glue.get_table(catalog, table.catalog_table) for table in flow.tables}
        bound_to = [
            (name, definition and (definition.columns, definition.partition_keys))
            for name, definition in tables.items()
        ]
        made_of = hashlib.sha256(repr((sql, bound_to)).encode()).hexdigest()[:12]
        state_key = object_names.stage_state_key(flow.name, "dataset", name)
        stored = stage_state.read(bucket, state_key).get("made_of")
        current = stored == made_of and glue.get_table(catalog, name) is not None
        if not current:
            failpoints.reached("dataset.before_view")
            athena.execute(f'CREATE OR REPLACE VIEW "{catalog}"."{name}" AS {sql}')
            failpoints.reached("dataset.after_view")
            stage_state.write(bucket, state_key, {"made_of": made_of})
        columns = _columns(athena, catalog, name)
        found = totals(athena, catalog, name, columns)
        # From the catalog, without a query; the table's view has the same columns, except one that it leaves out.
        upstream = {
            relation: (table.key("lake"), _names(tables[table.name]))
            for table in flow.tables
            for relation in (table.catalog_table, table.view)
        }
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": int(found.rows[0][0]),
                "dagster/column_schema": standard_metadata.schema(columns),
                "dagster/column_lineage": column_lineage.of(sql, (column for column, _ in columns), upstream),
                "sql_version": version,
                "made_of": made_of,
                dataset_refresh.COMMITS: dg.MetadataValue.json(commits),
                "changes": standard_metadata.UNCHANGED if current else f"view {catalog}.{name} created",
                **{
                    f"total_{column}": float(value or 0)
                    for (column, _), value in zip(found.columns[1:], found.rows[0][1:], strict=True)
                },
                **standard_metadata.scanned(athena),
            }
        )

    return dataset_asset


def require_readable(flow: Flow, file: str, sql: str, profile: str) -> None:
    """Raise ContractError if a dataset names a merge-on-read table in a way that its engine cannot read.

    The catalog has `<table>_ro` and `<table>_rt`. Trino, the engine of the local profile, reads both alike, so that
    `<table>_rt` would silently lack the changes in log files.
    """
    try:
        named = {table.name.lower() for table in sqlglot.parse_one(sql, dialect="athena").find_all(exp.Table)}
    except SqlglotError:
        return  # Athena reports its errors when the view is created
    for table in flow.tables:
        if table.target.table_type != "mor":
            continue
        merged = f"{table.name}_rt"
        problem = ""
        if table.name in named:
            problem = f"table {table.name} is merge-on-read, and the catalog has no table of that name"
        elif merged in named and profile == "local":
            problem = f"the local engine reads {merged} without the changes in its log files"
        if problem:
            raise ContractError(
                f"{flow.folder / 'defs.yaml'} is not valid: datasets: {file}: {problem}. Use {table.catalog_table}, "
                f"which has the state of the last compaction, or {table.view} without deleted rows"
                f"{'' if profile == 'local' else f', or {merged} with every commit'}"
            )


def totals(athena: Athena, catalog: str, name: str, columns: Sequence[tuple[str, str]] | None = None) -> QueryResult:
    """Query the number of rows of a dataset and the sum of each numeric column: one row (`rows`, then the columns).

    `columns` are the names and types of the dataset's columns; None queries them.
    """
    known = _columns(athena, catalog, name) if columns is None else columns
    sums = ", ".join(f'sum("{column}") AS "{column}"' for column, kind in known if kind.startswith(_NUMERIC))
    return athena.query(f'SELECT count(*) AS "rows"{", " + sums if sums else ""} FROM "{catalog}"."{name}"')  # noqa: S608


def exact(value: object) -> Decimal:
    """Return a total as a decimal; NULL (no rows) as 0."""
    return Decimal(str(value or 0))


def _names(table: TableDefinition | None) -> list[str]:
    return [] if table is None else [column.name for column in (*table.columns, *table.partition_keys)]


def _columns(athena: Athena, catalog: str, name: str) -> list[tuple[str, str]]:
    empty = athena.query(f'SELECT * FROM "{catalog}"."{name}" LIMIT 0')  # noqa: S608 - names are checked by the spec
    return [(column, kind) for column, kind in empty.columns]
