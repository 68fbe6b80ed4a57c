"""The source stage of a polled table: capture the columns, and check that the table can be polled."""

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.source import source_metadata
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source, schema_capture
from cdc_lake.pipeline.spark_jobs.job_runs import warm_spark
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs


def build(table: PipelineTable) -> dg.AssetsDefinition:
    """Return the source asset of a polled table. Raises ContractError if the file of its SELECT does not exist."""
    pipeline, poll = table.pipeline, table.poll
    source = pipeline.spec.source
    columns = " and ".join(filter(None, (poll.timestamp, poll.incrementing)))
    what = f"The query {poll.sql}" if poll.sql else f"Table {source.schema_}.{table.polled_table}"
    missed = " A change of a joined table alone is not seen." if poll.sql else ""

    @dg.asset(
        key=table.key("source"),
        description=(
            f"{what} of database {source.database}, polled by {columns} every {source.poll_seconds} s. Deletes are not "
            f"seen by polling: {polled_source.delete_finder(table)} finds them.{missed}"
        ),
        kinds={"postgres", "table"},
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=table.tags("source"),
        op_tags=step_priority.STREAM,
        freshness_policy=pipeline.freshness_policy,
        metadata={
            "dagster/table_name": f"{source.database}.{source.schema_}.{table.polled_table}",
            **({"sql": dg.MetadataValue.md(f"```sql\n{polled_source.query(table)}\n```")} if table.poll.sql else {}),
        },
    )
    def source_asset(
        context: dg.AssetExecutionContext, postgres: Postgres, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]
    ) -> dg.MaterializeResult[None]:
        warm_spark(context, table, spark)
        database = pipeline.source_postgres(postgres)
        failpoints.reached("source.before_schema")
        captured = schema_capture.capture(table, database, location(store).store())
        failpoints.reached("source.after_schema")
        bound = database.transactions_bound()  # raises if the login does not see all transactions
        return dg.MaterializeResult(
            metadata={
                **source_metadata(database, captured, polled_source.count(table, database)),
                "deletes": standard_metadata.DELETES,
                "transactions_bound": dg.MetadataValue.timestamp(bound.at),
                "system_identifier": database.identity().system_identifier,
            }
        )

    return source_asset
