"""A pipeline, with the names that follow from its spec: connector, slot, topics and assets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import NewType

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.sql_tokens import one_statement
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spec.field_types import seconds
from cdc_lake.pipeline.spec.pipeline import PipelineSpec
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE, NOTIFICATIONS, SIGNAL_TABLE
from resources.deployment import RECORD_BYTES
from resources.postgres.resource import Postgres

PURPOSE = "cdc_lake/purpose"
"""The run tag that contains the purpose of the job."""
STAGES = ("source", "topic", "raw", "lake", "dataset", "dashboard")

SPARK_POOL = "spark"
"""The pool of assets and ops that run Spark; dagster.yaml limits how many runs of a pool are active."""
VERIFY_POOL = "spark_checks"
"""The pool of checks that run Spark: separate, so that checks never delay the next commit."""

_MAX_REQUEST_SIZE = "producer.override.max.request.size"


SourcePostgres = NewType("SourcePostgres", Postgres)
"""The Postgres resource with the database that a pipeline captures; Pipeline.source_postgres() returns it."""


def connector_name(pipeline: str) -> str:
    """Return the name of a pipeline's source connector."""
    return f"cdc-lake-{pipeline}"


@dataclass(frozen=True)
class Pipeline:
    """A pipeline: the spec that its YAML contains, and the folder of its files."""

    spec: PipelineSpec
    folder: Path

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.spec.name

    @property
    def polled(self) -> bool:
        """Whether the source's rows are polled: there is no connector, slot, publication or heartbeat."""
        return self.spec.source.kind == "query"

    @property
    def connector(self) -> str:
        """The source connector's name."""
        return connector_name(self.name)

    @property
    def slot(self) -> str:
        """The replication slot's name."""
        return f"cdc_lake_{self.name}"

    @property
    def heartbeat_topic(self) -> str:
        """The topic of the heartbeat table's changes."""
        return self._topic(HEARTBEAT_TABLE)

    @property
    def signal_table(self) -> str:
        """The table with signals for the connector. Each pipeline has one, because a connector executes all signals."""
        return f"{SIGNAL_TABLE}_{self.name}"

    @property
    def signal_topic(self) -> str:
        """The topic of the signal table's changes; this project never reads it."""
        return self._topic(self.signal_table)

    @property
    def notification_topic(self) -> str:
        """The topic in which the connector reports the progress of incremental snapshots."""
        return self._topic(NOTIFICATIONS)

    @property
    def own_topics(self) -> tuple[str, ...]:
        """The topics that the connector writes, except the topics of tables."""
        if self.polled:
            return ()
        return self.heartbeat_topic, self.connector_heartbeat_topic, self.signal_topic, self.notification_topic

    @property
    def connector_heartbeat_topic(self) -> str:
        """The topic that Debezium creates for its own heartbeats; this project never reads it."""
        return f"__debezium-heartbeat.{self.spec.stream.prefix}"

    def _topic(self, name: str) -> str:
        return f"{self.spec.stream.prefix}.{self.spec.source.schema_}.{name}"

    @property
    def freshness_policy(self) -> dg.FreshnessPolicy:
        """The freshness policy of each asset, which detects missing runs.

        checks/watermark.py checks the age of the data: it passes while the source is idle, and fails while the
        connector is stopped.
        """
        return dg.FreshnessPolicy.time_window(timedelta(seconds=seconds(self.spec.freshness.runs)))

    def tags(self, stage: str, table: str | None = None) -> dict[str, str]:
        """Return an asset's tags: pipeline, stage and, for an asset of one table, the table."""
        return {"pipeline": self.name, "stage": stage} | ({} if table is None else {"table": table})

    @property
    def retention_ms(self) -> int:
        """The minimum retention of a topic, which is the replay window."""
        return seconds(self.spec.replay_window) * 1000

    def topic_settings(self, connector: Mapping[str, str]) -> dict[str, str]:
        """Return the configuration of each topic; the limit of a record's size is that of the connector."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": connector.get(_MAX_REQUEST_SIZE, str(RECORD_BYTES)),
        }

    @property
    def catalog(self) -> str:
        """The Glue database of the first target, which also contains the datasets."""
        return self.spec.targets[0].database

    @cached_property
    def tables(self) -> tuple[PipelineTable, ...]:
        """The pipeline's tables in the first target, in the order of the YAML."""
        return tuple(PipelineTable(self, table, self.spec.targets[0]) for table in self.spec.tables)

    @cached_property
    def lake_tables(self) -> tuple[PipelineTable, ...]:
        """The pipeline's tables in all targets, sorted by table and then by target, in the order of the YAML."""
        return tuple(each for table in self.tables for each in table.in_targets)

    @cached_property
    def hudi_tables(self) -> tuple[PipelineTable, ...]:
        """The Hudi tables of lake_tables."""
        return tuple(each for each in self.lake_tables if each.is_hudi)

    def source_postgres(self, postgres: Postgres) -> SourcePostgres:
        """Return the resource for the database that this pipeline captures.

        Assets, checks, sensors and commands call it once, with the resource that Dagster gives them.
        """
        return SourcePostgres(postgres.model_copy(update={"database": self.spec.source.database}))

    def key(self, stage: str, name: str) -> dg.AssetKey:
        """Return the asset key `[<pipeline>, <stage>, <name>]`."""
        return dg.AssetKey([self.name, stage, name])

    def file_path(self, file: str, field: str) -> Path:
        """Return the path of a file in the pipeline's folder. Raises ContractError if it does not exist."""
        path = self.folder / file
        if not path.is_file():
            raise ContractError(
                f"{self.folder / 'defs.yaml'} is not valid: {field}: there is no file {file} in {self.folder.name}/; "
                "create it, or remove it from the YAML"
            )
        return path

    def sql(self, file: str, field: str) -> str:
        """Return the statement of an SQL file, as one_statement() does. Raises as file_path() does."""
        return one_statement(self.file_path(file, field).read_text(encoding="utf-8"))
