"""Render the configuration of a pipeline's source connector: a file in `connectors/` with the pipeline's values."""

from collections.abc import Mapping
from pathlib import Path

from cdc_lake.pipeline.connector_transforms import require_nulls_kept, with_transforms
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health.omitted_columns import omitted_columns
from cdc_lake.pipeline.source_health.transformed_columns import require_transformable
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE
from resources.connect.config_template import column_pattern, render, table_pattern
from resources.deployment import Deployment

CONNECTORS = Path(__file__).parents[2] / "connectors"
PARTIAL_CONFIGS = ("columns", "converters", "snapshots", "transforms")
"""The folders in `connectors/` whose files are parts of a configuration, not whole configurations."""
_TABLES = "table.include.list"


def connector_config(pipeline: Pipeline, postgres: SourcePostgres, deployment: Deployment) -> dict[str, str]:
    """Return a pipeline's source connector configuration, including omitted columns and transforms.

    `connectors/columns/` and `connectors/transforms/` contain the settings for these. Raises TableMissing,
    require_nulls_kept()'s ContractError, and what omitted_columns(), require_transformable() and with_transforms()
    raise.
    """
    source = pipeline.spec.source
    columns = postgres.columns_by_table(source.schema_, source.tables)
    excluded = []
    for table in pipeline.tables:
        omitted = omitted_columns(table, postgres, columns[table.name])
        require_transformable(table, columns[table.name], omitted)
        names = {column.name for column in omitted}
        if deployment.profile == "aws":
            require_nulls_kept(table, [column for column in columns[table.name] if column.name not in names])
        excluded += [(source.schema_, table.name, column.name) for column in omitted]
    config = with_transforms(pipeline, postgres, base_config(pipeline, postgres, deployment), CONNECTORS)
    if not excluded:
        return config
    return config | render(CONNECTORS / "columns" / "excluded.json", {"columns": column_pattern(excluded)})


def base_config(pipeline: Pipeline, postgres: SourcePostgres, deployment: Deployment) -> dict[str, str]:
    """Return the configuration without omitted columns and transforms; the source's tables need not exist.

    It is enough for a connector that is not started. It is `connectors/debezium-postgres.json` with the pipeline's
    values. A file of the same name in `connectors/<pipeline>/` replaces it. For Avro, `connectors/converters/` has the
    settings of the converters.
    """
    own = CONNECTORS / pipeline.name / "debezium-postgres.json"
    source, stream = pipeline.spec.source, pipeline.spec.stream
    registry = {}
    if stream.registry is not None:
        registry = {
            "registry_url": deployment.registry_url,
            "registry_authorization": deployment.registry_authorization,
        }
    return render(
        own if own.is_file() else CONNECTORS / own.name,
        {
            "host": deployment.source_host,
            "port": str(postgres.port),
            "user": postgres.capture_role or postgres.login().user,
            "password": deployment.password_reference,
            "database": source.database,
            "slot": pipeline.slot,
            "publication": source.publication,
            "prefix": pipeline.spec.stream.prefix,
            # The heartbeat table first, so that a snapshot's heartbeat arrives before its other rows.
            "tables": table_pattern((source.schema_, name) for name in [HEARTBEAT_TABLE, *source.tables]),
            "schema": source.schema_,
            "partitions": str(pipeline.spec.stream.partitions),
            "retention_ms": str(pipeline.retention_ms),
            "exactly_once": deployment.exactly_once,
            "record_bytes": str(deployment.record_bytes),
            **registry,
        },
        None if stream.registry is None else CONNECTORS / "converters" / f"{stream.format}-{stream.registry}.json",
    )


def with_incremental_snapshots(pipeline: Pipeline, config: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration with `connectors/snapshots/incremental.json`; settings of the pipeline's own file win.

    Only a connector whose first snapshot is complete may have these settings: the notification that a snapshot starts
    has an empty offset, and a connector that is killed right after it would treat the snapshot as complete.
    """
    values = {
        "schema": pipeline.spec.source.schema_,
        "signal_table": pipeline.signal_table,
        "notification_topic": pipeline.notification_topic,
    }
    return render(CONNECTORS / "snapshots" / "incremental.json", values) | dict(config)


def captured(config: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a connector's configuration that captures() reads."""
    return {_TABLES: config[_TABLES]} if _TABLES in config else {}


def captures(config: Mapping[str, str], table: PipelineTable) -> bool:
    """Return whether a connector with this configuration captures the table."""
    listed = config.get(_TABLES)
    return listed is None or table_pattern([(table.pipeline.spec.source.schema_, table.name)]) in listed.split(",")
