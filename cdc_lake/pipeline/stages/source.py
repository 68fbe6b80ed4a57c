"""source: the table is fit to be captured, and its schema is on record.

Materialising checks the key, sets the replica identity, makes sure that the publication has the table and the
heartbeat, and captures the schema beside the raw objects.
"""

import dagster as dg

from cdc_lake.contract import schema
from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline import report
from cdc_lake.pipeline.flow import RUNS_WITHIN, TableFlow, location
from cdc_lake.pipeline.spec import HEARTBEAT_TABLE
from resources.object_store import ObjectStore
from resources.postgres import Postgres


def build(table: TableFlow) -> dg.AssetsDefinition:
    """The source asset of a table."""
    flow = table.pipeline
    source = flow.spec.source

    @dg.asset(
        key=table.key("source"),
        description=f"Table {table.source_table} of database {source.database}, in publication {source.publication}.",
        kinds={"postgres", "table"},
        group_name=flow.name,
        owners=flow.spec.owners,
        freshness_policy=dg.FreshnessPolicy.time_window(RUNS_WITHIN),
        metadata={"dagster/table_name": f"{source.database}.{table.source_table}"},
    )
    def source_asset(postgres: Postgres, store: ObjectStore) -> dg.MaterializeResult[None]:
        postgres = flow.at_source(postgres)
        key = postgres.primary_key(source.schema_, table.name)
        if set(key) != set(table.spec.key):
            raise ContractError(
                f"table {table.source_table} has primary key ({', '.join(key) or 'none'}), but the YAML of "
                f"{flow.name} says key: [{', '.join(table.spec.key)}]; make them the same"
            )
        # FULL: an UPDATE that leaves a TOASTed value alone carries it all the same, and a delete its last row.
        identity = postgres.set_replica_identity(source.schema_, table.name, "full")
        heartbeat = postgres.ensure_heartbeat(source.schema_)
        publication = postgres.ensure_publication(
            source.publication, [(source.schema_, table.name), (source.schema_, HEARTBEAT_TABLE)]
        )
        columns = [
            schema.Column(name=column.name, type=column.type_name, nullable=column.nullable)
            for column in postgres.columns(source.schema_, table.name)
        ]
        captured, added = schema.capture(location(store).store(), flow.name, table.source_table, columns, key)
        changes = [
            *(["replica identity set to full"] if identity else []),
            *([f"{HEARTBEAT_TABLE} made"] if heartbeat else []),
            *([f"publication {publication.action}"] if publication.action != "unchanged" else []),
            *([f"schema version {captured.version} captured"] if added else []),
        ]
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": postgres.row_count(source.schema_, table.name),
                "dagster/column_schema": report.schema((column.name, column.type) for column in columns),
                "dagster/uri": f"postgresql://{postgres.host}:{postgres.port}/{source.database}",
                "changes": ", ".join(changes) or report.UNCHANGED,
                "schema_version": captured.version,
                "wal_lsn": postgres.current_lsn(),
                "system_identifier": postgres.system_identifier(),
            }
        )

    return source_asset
