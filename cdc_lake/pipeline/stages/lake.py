"""lake: what is landed and not applied yet, folded into the Hudi table; table and view in the catalog."""

import hashlib
from dataclasses import replace

import dagster as dg

from cdc_lake.contract import schema, timeline
from cdc_lake.jobs import upsert
from cdc_lake.pipeline import report, stream
from cdc_lake.pipeline.flow import RUNS_WITHIN, TableFlow, location
from resources.athena import Athena
from resources.glue import GlueCatalog, GlueColumn, hudi_table
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.spark import LocalSpark

_VIEW = "cdc_lake.view"


def build(table: TableFlow) -> dg.AssetsDefinition:
    """The lake asset of a table."""
    flow = table.pipeline
    catalog = flow.spec.catalog

    @dg.asset(
        key=table.key("lake"),
        deps=[table.key("raw")],
        description=(
            f"Hudi table {catalog}.{table.name}: the fold of all changes of {table.source_table}, one row a key. "
            f"Read it through {catalog}.{table.view}, which leaves out the rows that are deleted at the source."
        ),
        kinds={"hudi", "pyspark", "s3"},
        group_name=flow.name,
        owners=flow.spec.owners,
        freshness_policy=dg.FreshnessPolicy.time_window(RUNS_WITHIN),
        metadata={"dagster/table_name": f"{catalog}.{table.name}"},
        pool=f"lake_{flow.name}_{table.name}",
    )
    def lake_asset(
        context: dg.AssetExecutionContext,
        kafka: Kafka,
        store: ObjectStore,
        spark: LocalSpark,
        glue: GlueCatalog,
        athena: Athena,
    ) -> dg.MaterializeResult[None]:
        where = location(store)
        bucket = where.store()
        spec = table.upsert_spec(where, owner=f"dagster run {context.run.run_id}")
        changes: dict[str, str | int | float] = {"changes": report.UNCHANGED, "events": 0, "seconds": 0.0}
        if upsert.new_manifests(bucket, spec):
            done = spark.run(upsert.run, spec)
            changes = {
                "changes": f"commit {done.instant}: {done.events} events of {done.keys} keys",
                "events": done.events,
                "keys": done.keys,
                "inserts": done.inserts,
                "updates": done.updates,
                "dead_letters": done.dead_letters,
                "bytes_written": done.bytes_written,
                "files_written": done.files_written,
                "write_amplification": done.bytes_written / max(1, done.events),
                "seconds": done.seconds,
            }
        columns = schema.latest(bucket, flow.name, table.source_table).lake_columns()
        register(table, columns, glue, athena, f"s3://{store.bucket}/{table.lake_prefix.rstrip('/')}")
        counted = athena.query(f'SELECT count(*), count_if("__deleted") FROM "{catalog}"."{table.name}"')  # noqa: S608
        rows, deleted = counted.rows[0]
        commit = timeline.last_commit(bucket, table.lake_prefix)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": rows - deleted,
                "deleted_rows": deleted,
                "dagster/column_schema": report.schema(columns),
                "dagster/column_lineage": report.passed_on(table.key("raw"), (name for name, _ in columns)),
                "dagster/uri": f"s3://{store.bucket}/{table.lake_prefix}",
                "instant": "none" if commit is None else commit.instant,
                **report.watermark(stream.lake_watermark(bucket, table, stream.topic_state(kafka, table))),
                **report.facts(changes),
            }
        )

    return lake_asset


def register(table: TableFlow, columns: list[tuple[str, str]], glue: GlueCatalog, athena: Athena, uri: str) -> bool:
    """Put table and view into the catalog where they are missing or differ; whether that was so."""
    catalog = table.pipeline.spec.catalog
    partitions = table.spec.partition_by
    names = ", ".join(f'"{name}"' for name, _ in columns if name != "__deleted")
    view = (
        f'CREATE OR REPLACE VIEW "{catalog}"."{table.view}" AS '  # noqa: S608 - checked identifiers
        f'SELECT {names} FROM "{catalog}"."{table.name}" WHERE NOT "__deleted"'
    )
    bare = hudi_table(
        database=catalog,
        name=table.name,
        location=uri,
        columns=[GlueColumn(name, kind) for name, kind in columns if name not in partitions],
        partition_keys=[GlueColumn(name, kind) for name, kind in columns if name in partitions],
    )
    # The view that was made last is noted at the table, after it was made: a run that is cut off in between is
    # followed by one that makes it.
    made = f"{view} -- {[kind for _, kind in columns]}"
    noted = replace(bare, parameters={**bare.parameters, _VIEW: hashlib.sha256(made.encode()).hexdigest()[:16]})
    if glue.get_table(catalog, table.name) == noted and glue.get_table(catalog, table.view) is not None:
        return False
    glue.ensure_database(catalog)
    glue.put_table(bare)
    athena.execute(view)
    glue.put_table(noted)
    return True
