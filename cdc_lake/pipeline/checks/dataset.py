"""Check that a dataset's totals equal those of an equivalent query on the source's tables.

That query is `<dataset>.source.sql` in the folder of the dataset's SQL, in PostgreSQL's dialect; it must return the
dataset's columns. A polled pipeline has the same check, which fails while rows are in the lake that were deleted at the
source, until a reconciliation finds them.
"""

import dagster as dg
from psycopg2 import sql as pg

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline import lake_commit, table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.dataset_totals import as_decimal, equal_totals, totals
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.operations import polling
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake.pipeline.spec.dataset import DatasetSpec
from resources.athena import Athena
from resources.connect.connector_interface import Connectors
from resources.deployment import Deployment
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres


def build(pipeline: Pipeline) -> list[dg.AssetChecksDefinition]:
    """Return one check for each dataset that has a source query."""
    datasets = pipeline.spec.datasets
    return [_check(pipeline, each) for each in datasets if (pipeline.folder / f"{each.name}.source.sql").is_file()]


def _check(pipeline: Pipeline, dataset: DatasetSpec) -> dg.AssetChecksDefinition:
    name, key = dataset.name, pipeline.key("dataset", dataset.name)
    query = pipeline.sql(f"{name}.source.sql", "datasets")

    @dg.asset_check(
        asset=key,
        name="totals_equal_source",
        description=f"The row count of {name} and the sums of its decimal and floating-point columns equal those of "
        f"{name}.source.sql on the source.",
        metadata={**tiers.SCHEDULED, "sql": dg.MetadataValue.md(f"```sql\n{query}\n```")},
        op_tags=step_priority.LAKE,
    )
    def totals_equal_source(
        context: dg.AssetCheckExecutionContext,
        postgres: Postgres,
        kafka: Kafka,
        connect: dg.ResourceParam[Connectors],
        store: ObjectStore,
        athena: Athena,
        deployment: Deployment,
    ) -> dg.AssetCheckResult:
        commits = table_progress.lake_commits(location(store).store(), pipeline)
        found = totals(athena, pipeline.catalog, name)
        columns = [column for column, _ in found.columns]
        sums = [pg.SQL("sum({})").format(pg.Identifier(column)) for column in columns[1:]]
        source_database = pipeline.source_postgres(postgres)
        with source_database.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                pg.SQL("select {} from ({}) as question").format(
                    pg.SQL(", ").join([pg.SQL("count(*)"), *sums]), pg.SQL(query)
                )
            )
            row = cursor.fetchone() or ()
        lake = {column: as_decimal(value) for column, value in zip(columns, found.rows[0], strict=True)}
        source = {column: as_decimal(value) for column, value in zip(columns, row, strict=True)}
        equal = all(equal_totals(kind, lake[column], source[column]) for column, kind in found.columns)
        # The lake was queried before the source: a change that the source committed in between is not applied yet, or
        # is in a later commit of the lake, or a refined table is not rebuilt yet.
        built = standard_metadata.latest(context.instance, key).get(standard_metadata.LAKE_COMMITS)
        late = None
        if dataset.table and (built is None or built.value != commits):
            late = "the dataset is not built over the newest commits yet"
        elif not equal and (
            _has_pending(pipeline, source_database, kafka, connect, store, deployment.stream_seconds)
            or table_progress.lake_commits(location(store).store(), pipeline) != commits
        ):
            late = "the lake has not applied all changes yet"
        return dg.AssetCheckResult(
            passed=equal,
            severity=dg.AssetCheckSeverity.WARN if late else dg.AssetCheckSeverity.ERROR,
            description=f"Not comparable now: {late}" if late and not equal else None,
            metadata={
                "lake": dg.MetadataValue.json({column: str(value) for column, value in lake.items()}),
                "source": dg.MetadataValue.json({column: str(value) for column, value in source.items()}),
            },
        )

    return totals_equal_source


def _has_pending(
    pipeline: Pipeline, postgres: SourcePostgres, kafka: Kafka, connect: Connectors, store: ObjectStore, seconds: float
) -> bool:
    """Return whether a change that is committed by now is not in the lake yet; deletes of polled rows do not count."""
    where = location(store)
    bucket = where.store()
    if not pipeline.polled:
        table_progress.barrier(postgres, kafka, connect, pipeline, seconds)
    elif any(polling.has_unpolled_rows(table, postgres, bucket) for table in pipeline.tables):
        return True
    for table in pipeline.tables:
        head = Chain(bucket, pipeline.name, table.topic).head()
        if table_progress.offsets_behind(head, topic_state.current(kafka, table, bucket)) > 0:
            return True
        commit = lake_commit.newest(bucket, table)
        if upsert.new_manifests(bucket, table.upsert_spec(where, owner="check"), commit):
            return True
    return False
