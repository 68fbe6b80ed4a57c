"""The dataset stage: a view in the catalog for each SQL file of the pipeline, for Athena and QuickSight.

For a refined table, the view reads a Parquet table; each build writes a new one (refined_table.py).
"""

import os
from collections.abc import Sequence

import dagster as dg
import sqlglot
from sqlglot.errors import SqlglotError

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.parquet_file import OWN_COLUMNS
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.sql_tables import lower_names, tables
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import column_lineage, standard_metadata
from cdc_lake.pipeline.assets.dataset_totals import column_types, totals
from cdc_lake.pipeline.assets.refined_table import REPLACED_BUILDS, RefinedTable
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import upstream_checks
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.short_digest import short_digest
from cdc_lake.pipeline.spec.dataset import DatasetSpec
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog, TableDefinition
from resources.object_store import ObjectStore


def build(pipeline: Pipeline, dataset: DatasetSpec, required: Sequence[dg.AssetCheckKey] = ()) -> dg.AssetsDefinition:
    """Return the dataset asset of one SQL file; it is not built while a `required` check fails."""
    name, file = dataset.name, dataset.sql
    catalog = pipeline.catalog
    sql = pipeline.sql(file, "datasets")
    require_readable(pipeline, file, sql, os.environ.get("CDC_LAKE_PROFILE", "local"))
    version = short_digest(repr((sql, dataset.partition_by) if dataset.table else sql))
    what = "Refined table, in Snappy Parquet, behind the view" if dataset.table else "View"

    @dg.asset(
        key=pipeline.key("dataset", name),
        deps=[table.key("lake") for table in pipeline.tables],
        # The SQL is in the description because Dagster's UI truncates it in the metadata table.
        description=f"{what} {catalog}.{name}, defined in {file}.\n\n```sql\n{sql}\n```",
        kinds={"athena", "sql", "parquet" if dataset.table else "view"},
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=pipeline.tags("dataset"),
        code_version=version,
        freshness_policy=pipeline.freshness_policy,
        metadata={"dagster/table_name": f"{catalog}.{name}"},
    )
    def dataset_asset(
        context: dg.AssetExecutionContext, athena: Athena, glue: GlueCatalog, store: ObjectStore
    ) -> dg.MaterializeResult[None]:
        bucket = location(store).store()
        upstream_checks.require_passed(context.instance, f"dataset {name}", required, bucket, pipeline.name)
        athena = athena.metered(catalog)
        commits = table_progress.lake_commits(bucket, pipeline)  # before the tables are read
        # A view keeps the columns and types that its tables had when it was created, also for `*`.
        in_catalog = {table.name: glue.get_table(catalog, table.catalog_table) for table in pipeline.tables}
        table_columns = [
            (name, definition and (definition.columns, definition.partition_keys))
            for name, definition in in_catalog.items()
        ]
        refined = RefinedTable(pipeline, dataset, sql, athena, glue, bucket, store.bucket)
        if dataset.table:
            inputs_digest = short_digest(repr((sql, dataset.partition_by, table_columns, commits)))
            changes = _refine(refined, inputs_digest, f"dagster run {context.run.run_id}")
        else:
            inputs_digest = short_digest(repr((sql, table_columns)))
            changes = _create_view(refined, inputs_digest)
        columns = column_types(athena, catalog, name)
        found = totals(athena, catalog, name, columns)
        upstream = {
            relation: (table.key("lake"), names)
            for table in pipeline.tables
            for relation, names in _relations(table, in_catalog[table.name]).items()
        }
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": int(found.rows[0][0]),
                "dagster/column_schema": standard_metadata.schema(columns),
                "dagster/column_lineage": column_lineage.query_lineage(
                    sql, (column for column, _ in columns), upstream
                ),
                "sql_version": version,
                "inputs_digest": inputs_digest,
                standard_metadata.LAKE_COMMITS: dg.MetadataValue.json(commits),
                **standard_metadata.values(changes),
                **{
                    f"total_{column}": float(value or 0)
                    for (column, _), value in zip(found.columns[1:], found.rows[0][1:], strict=True)
                },
                **standard_metadata.athena_usage(athena),
            }
        )

    return dataset_asset


def _create_view(refined: RefinedTable, inputs_digest: str) -> dict[str, str | int | float]:
    """Create the view unless it is current; return what changed. `inputs_digest` is that of its SQL and tables.

    Deletes the builds of a dataset that was a refined table before.
    """
    catalog, name = refined.pipeline.catalog, refined.dataset.name
    state_key = object_names.stage_state_key(refined.pipeline.name, "dataset", name)
    stored = stage_state.read(refined.store, state_key)
    current = stored.get("inputs_digest") == inputs_digest and refined.glue.get_table(catalog, name) is not None
    if not current:
        # If this run ends before the new state is stored, the view may be either; the next run creates it again.
        stage_state.write(refined.store, state_key, {**stored, "inputs_digest": ""})
        failpoints.reached("dataset.before_view")
        refined.athena.execute(f'CREATE OR REPLACE VIEW "{catalog}"."{name}" AS {refined.sql}')
        failpoints.reached("dataset.after_view")
    was_table = "build" in stored or REPLACED_BUILDS in stored
    replaced = refined.delete_earlier("", stored.get(REPLACED_BUILDS, {})) if was_table else {}
    state = {"inputs_digest": inputs_digest, **({REPLACED_BUILDS: replaced} if replaced else {})}
    if state != stored:
        stage_state.write(refined.store, state_key, state)
    return {"changes": standard_metadata.UNCHANGED if current else f"view {catalog}.{name} created"}


def _refine(refined: RefinedTable, inputs_digest: str, owner: str) -> dict[str, str | int | float]:
    """Build the refined table unless it is current, and delete earlier builds; return what changed.

    `inputs_digest` is that of its SQL, its tables and their commits. The stored one belongs to the stored build. The
    view may read another build: a run can end before it stores its own, and the view of a run that was paused can
    replace a newer one.
    """
    pipeline, name = refined.pipeline.name, refined.dataset.name
    state_key = object_names.stage_state_key(pipeline, "dataset", name)
    with lease.held(refined.store, object_names.dataset_lease_key(pipeline, name), owner) as held:
        stored = stage_state.read(refined.store, state_key)
        current = refined.build_of_view()
        changes: dict[str, str | int | float] = {"changes": standard_metadata.UNCHANGED}
        if not current or (stored.get("build"), stored.get("inputs_digest")) != (current, inputs_digest):
            done = refined.build(held.check)
            current = done.id
            changes = {
                "changes": f"build {done.id}: {counted(done.partitions, 'partition')} written "
                f"by {counted(done.statements, 'statement')}"
                if done.partitions
                else f"build {done.id}",
                "partitions": done.partitions,
            }
        replaced = refined.delete_earlier(current, stored.get(REPLACED_BUILDS, {}))
        stage_state.write(
            refined.store, state_key, {"inputs_digest": inputs_digest, "build": current, REPLACED_BUILDS: replaced}
        )
    return changes


def require_readable(pipeline: Pipeline, file: str, sql: str, profile: str) -> None:
    """Raise ContractError if a dataset names a table that is not in the catalog, or that the engine reads incompletely.

    For a Parquet target, the catalog has `<table>_raw` and `<table>_latest`; for a merge-on-read table, it has
    `<table>_ro` and `<table>_rt`. Trino, the engine of the local profile, reads only the base files of a merge-on-read
    table, also through `<table>_rt`. A view on `<table>_rt` would lack the changes in log files, without an error.
    """
    try:
        found = tables(lower_names(sqlglot.parse_one(sql, dialect="athena")))
    except SqlglotError:
        return  # Athena reports its errors when the view is created
    named = {table.name for table in found if table.db in {"", pipeline.catalog}}
    for table in pipeline.tables:
        if not table.is_hudi and (wrong := named & {table.name, f"{table.name}_current"}):
            raise ContractError(
                f"{pipeline.folder / 'defs.yaml'} is not valid: datasets: {file}: target {table.target.name} has "
                f"`format: parquet`, so the catalog has no table {min(wrong)}. Use {table.view}, which has the newest "
                f"state of each row, or {table.catalog_table}, which has all changes."
            )
        if not table.is_merge_on_read:
            continue
        merged = f"{table.name}_rt"
        problem = ""
        if table.name in named:
            problem = f"table {table.name} is merge-on-read, and the catalog has no table of that name"
        elif merged in {each.name for each in found} and profile == "local":
            problem = f"the local engine reads {merged} without the changes in its log files"
        if problem:
            raise ContractError(
                f"{pipeline.folder / 'defs.yaml'} is not valid: datasets: {file}: {problem}. Use "
                f"{table.catalog_table}, which has the state of the last compaction, or {table.view}, which is the "
                "same without deleted "
                f"rows{'' if profile == 'local' else f', or {merged}, which has the state of the last commit'}."
            )


def _relations(table: PipelineTable, definition: TableDefinition | None) -> dict[str, list[str]]:
    """Return the column names of the table and of its view, from the catalog; empty lists if the table does not exist.

    The list of a Hudi table's view includes `__deleted`, which the view does not have. A Parquet target's view has
    ORDER_COLUMN instead of OWN_COLUMNS.
    """
    if definition is None:
        return {table.catalog_table: [], table.view: []}
    names = [column.name for column in (*definition.columns, *definition.partition_keys)]
    shown = names if table.is_hudi else [*(name for name in names if name not in OWN_COLUMNS), ORDER_COLUMN]
    return {table.catalog_table: names, table.view: shown}
