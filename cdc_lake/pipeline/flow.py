"""The names that follow from a pipeline's spec: one place for topics, connector, slot, assets and views.

Here: pure functions of the spec. Not here: anything that asks a system.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import dagster as dg

from cdc_lake.contract import names
from cdc_lake.contract.store import S3Location
from cdc_lake.jobs.upsert import UpsertSpec
from cdc_lake.pipeline.spec import PipelineSpec, TableSpec, seconds
from resources.object_store import ObjectStore

HEARTBEAT_TABLE = "cdc_heartbeat"
STAGES = ("source", "topic", "raw", "lake", "dataset", "dashboard")

# A day without a run of a stage is worth a look, whatever the data do: how old the data are is the watermark's
# business (checks/watermark.py), which an idle source keeps green and a stopped connector turns red.
RUNS_WITHIN = timedelta(days=1)


@dataclass(frozen=True)
class Flow:
    """A pipeline as its YAML describes it, with the folder that holds its files."""

    spec: PipelineSpec
    folder: Path

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.spec.name

    @property
    def connector(self) -> str:
        """The source connector's name."""
        return f"cdc-lake-{self.name}"

    @property
    def slot(self) -> str:
        """The replication slot's name."""
        return f"cdc_lake_{self.name}"

    @property
    def heartbeat_topic(self) -> str:
        """The topic that carries the heartbeats' rows."""
        return f"{self.spec.stream.prefix}.{self.spec.source.schema_}.{HEARTBEAT_TABLE}"

    @property
    def connector_heartbeat_topic(self) -> str:
        """The topic that Debezium makes for heartbeats of its own; nothing here reads it."""
        return f"__debezium-heartbeat.{self.spec.stream.prefix}"

    @property
    def retention_ms(self) -> int:
        """What a topic keeps at least: the replay window."""
        return seconds(self.spec.replay_window) * 1000

    @cached_property
    def tables(self) -> tuple[TableFlow, ...]:
        """One flow for each table."""
        return tuple(TableFlow(self, table) for table in self.spec.tables)

    def key(self, stage: str, name: str) -> dg.AssetKey:
        """`[<pipeline>, <stage>, <name>]`."""
        return dg.AssetKey([self.name, stage, name])

    def sql(self, file: str) -> str:
        """The text of an SQL file beside the YAML. Raises FileNotFoundError that names the YAML's field."""
        path = self.folder / file
        if not path.is_file():
            raise FileNotFoundError(
                f"pipeline {self.name} names {file}, but there is no such file in {self.folder.name}/"
            )
        return path.read_text().strip().rstrip(";")


@dataclass(frozen=True)
class TableFlow:
    """One table's way through its pipeline."""

    pipeline: Flow
    spec: TableSpec

    @property
    def name(self) -> str:
        """The table's name in source and lake."""
        return self.spec.name

    @property
    def source_table(self) -> str:
        """`schema.table` at the source."""
        return f"{self.pipeline.spec.source.schema_}.{self.name}"

    @property
    def topic(self) -> str:
        """The topic of the table's changes."""
        return f"{self.pipeline.spec.stream.prefix}.{self.source_table}"

    @property
    def view(self) -> str:
        """The view that leaves out rows that are deleted at the source."""
        return f"{self.name}_current"

    @property
    def lake_prefix(self) -> str:
        """The Hudi table's prefix in the bucket."""
        return names.lake_prefix(self.pipeline.name, self.name)

    def key(self, stage: str) -> dg.AssetKey:
        """The table's asset of a stage."""
        return self.pipeline.key(stage, self.name)

    def upsert_spec(self, location: S3Location, owner: str) -> UpsertSpec:
        """What the upsert job needs to know of this table."""
        return UpsertSpec(
            location=location,
            pipeline=self.pipeline.name,
            topic=self.topic,
            source_table=self.source_table,
            table=self.name,
            key=tuple(self.spec.key),
            partition_by=tuple(self.spec.partition_by),
            owner=owner,
        )


def location(store: ObjectStore) -> S3Location:
    """The resource's bucket as the contract and the jobs take it."""
    return S3Location(store.bucket, store.endpoint_url, store.region, store.access_key, store.secret_key)
