"""The names that follow from a pipeline's spec: one place for topics, connector, slot, assets, views and the bucket."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.special_values import ValueRules
from cdc_lake.jobs.apply.upsert import UpsertSpec
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake.pipeline.spec import HEARTBEAT_TABLE, PipelineSpec, TableSpec, seconds
from resources.deployment import RECORD_BYTES
from resources.errors import Unreachable
from resources.object_store import ObjectStore
from resources.postgres import Postgres

PURPOSE = "cdc_lake/purpose"
"""The tag of a run that contains the purpose of its job."""
STAGES = ("source", "topic", "raw", "lake", "dataset", "dashboard")

SPARK_POOL = "spark"
"""The pool of assets and ops that run Spark; how many runs of it there are at once is the instance's setting."""
VERIFY_POOL = "spark_checks"
"""The pool of checks that run Spark: a pool of its own, so that they never keep the next commit waiting."""

_CONNECT_SECONDS = 5.0

_LARGEST = "producer.override.max.request.size"


def connector_name(pipeline: str) -> str:
    """The name of a pipeline's source connector."""
    return f"cdc-lake-{pipeline}"


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
        return connector_name(self.name)

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
    def freshness_policy(self) -> dg.FreshnessPolicy:
        """The policy of each asset: it sees runs. How old the data are is the watermark's business
        (checks/watermark.py), which an idle source keeps green and a stopped connector turns red.
        """
        return dg.FreshnessPolicy.time_window(timedelta(seconds=seconds(self.spec.freshness.runs)))

    def tags(self, stage: str, table: str | None = None) -> dict[str, str]:
        """The tags of an asset: pipeline, stage and, where it is of one table, that."""
        return {"pipeline": self.name, "stage": stage} | ({} if table is None else {"table": table})

    @property
    def retention_ms(self) -> int:
        """What a topic keeps at least: the replay window."""
        return seconds(self.spec.replay_window) * 1000

    def topic_settings(self, connector: Mapping[str, str]) -> dict[str, str]:
        """What the contract asks of each topic; it takes as large a record as the connector sends."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": connector.get(_LARGEST, str(RECORD_BYTES)),
        }

    @cached_property
    def tables(self) -> tuple[TableFlow, ...]:
        """One flow for each table."""
        return tuple(TableFlow(self, table) for table in self.spec.tables)

    def at_source(self, postgres: Postgres) -> Postgres:
        """The server's resource, in the database that this pipeline captures."""
        return postgres.model_copy(update={"database": self.spec.source.database})

    def key(self, stage: str, name: str) -> dg.AssetKey:
        """`[<pipeline>, <stage>, <name>]`."""
        return dg.AssetKey([self.name, stage, name])

    def beside(self, file: str, field: str) -> Path:
        """A file beside the YAML. Raises ContractError that names the YAML and its field where there is none."""
        path = self.folder / file
        if not path.is_file():
            raise ContractError(
                f"{self.folder / 'defs.yaml'} is not valid: {field}: there is no file {file} in {self.folder.name}/; "
                "write it, or leave it out"
            )
        return path

    def sql(self, file: str, field: str) -> str:
        """The text of an SQL file beside the YAML, without a semicolon at its end. Raises what beside() raises."""
        return self.beside(file, field).read_text(encoding="utf-8").strip().rstrip(";")


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
        return object_names.lake_prefix(self.pipeline.name, self.name)

    def key(self, stage: str) -> dg.AssetKey:
        """The table's asset of a stage."""
        return self.pipeline.key(stage, self.name)

    def tags(self, stage: str) -> dict[str, str]:
        """The tags of the table's asset of a stage."""
        return self.pipeline.tags(stage, self.name)

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
            values=ValueRules(self.spec.values.infinity, self.spec.values.nan),
            dead_letter_limit=self.pipeline.spec.dead_letter_limit,
            owner=owner,
        )

    def purge_spec(self, location: S3Location, owner: str) -> PurgeSpec:
        """What the purge job needs to know of this table."""
        return PurgeSpec(self.upsert_spec(location, owner), seconds(self.pipeline.spec.replay_window))


def location(store: ObjectStore) -> S3Location:
    """The resource's bucket as the contract and the jobs take it.

    Raises Unreachable with the resource's hint where nobody listens at its endpoint: boto3 would try that for half
    a minute, and could not say what to do.
    """
    if store.endpoint_url is not None:
        at = urlsplit(store.endpoint_url)
        try:
            with socket.create_connection((at.hostname or "", at.port or 443), timeout=_CONNECT_SECONDS):
                pass
        except OSError as error:
            raise Unreachable(
                f"The object store at {store.endpoint_url} does not answer ({error}).", store.hint
            ) from error
    return S3Location(
        store.bucket, store.endpoint_url, store.region_name, store.aws_access_key_id, store.aws_secret_access_key
    )
