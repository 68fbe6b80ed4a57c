"""Pipelines and their tables, with the names that follow from the spec: topics, connector, slot, assets and views."""

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
from resources.postgres.resource import Postgres

PURPOSE = "cdc_lake/purpose"
"""The run tag that contains the purpose of the job."""
STAGES = ("source", "topic", "raw", "lake", "dataset", "dashboard")

SPARK_POOL = "spark"
"""The pool of assets and ops that run Spark; dagster.yaml limits how many runs of a pool there are at once."""
VERIFY_POOL = "spark_checks"
"""The pool of checks that run Spark: separate, so that checks never delay the next commit."""

_CONNECT_SECONDS = 5.0

_MAX_REQUEST_SIZE = "producer.override.max.request.size"


def connector_name(pipeline: str) -> str:
    """Return the name of a pipeline's source connector."""
    return f"cdc-lake-{pipeline}"


@dataclass(frozen=True)
class Flow:
    """A pipeline: the spec that its YAML contains, and the folder of its files."""

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
        """The topic of the heartbeat table's changes."""
        return f"{self.spec.stream.prefix}.{self.spec.source.schema_}.{HEARTBEAT_TABLE}"

    @property
    def connector_heartbeat_topic(self) -> str:
        """The topic that Debezium creates for its own heartbeats; this project never reads it."""
        return f"__debezium-heartbeat.{self.spec.stream.prefix}"

    @property
    def freshness_policy(self) -> dg.FreshnessPolicy:
        """The freshness policy of each asset, which detects missing runs. The age of the data is checked by
        checks/watermark.py, which passes while the source is idle and fails while the connector is stopped.
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
        """Return the configuration of each topic; its largest record is the largest that the connector can send."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": connector.get(_MAX_REQUEST_SIZE, str(RECORD_BYTES)),
        }

    @cached_property
    def tables(self) -> tuple[TableFlow, ...]:
        """The pipeline's tables, in the order of the YAML."""
        return tuple(TableFlow(self, table) for table in self.spec.tables)

    def at_source(self, postgres: Postgres) -> Postgres:
        """Return the resource, connected to the database that this pipeline captures."""
        return postgres.model_copy(update={"database": self.spec.source.database})

    def key(self, stage: str, name: str) -> dg.AssetKey:
        """Return the asset key `[<pipeline>, <stage>, <name>]`."""
        return dg.AssetKey([self.name, stage, name])

    def beside(self, file: str, field: str) -> Path:
        """Return the path of a file beside the YAML. Raises ContractError if it does not exist."""
        path = self.folder / file
        if not path.is_file():
            raise ContractError(
                f"{self.folder / 'defs.yaml'} is not valid: {field}: there is no file {file} in {self.folder.name}/; "
                "write it, or leave it out"
            )
        return path

    def sql(self, file: str, field: str) -> str:
        """Return the text of an SQL file beside the YAML, without its final semicolon. Raises as beside() does."""
        return self.beside(file, field).read_text(encoding="utf-8").strip().rstrip(";")


@dataclass(frozen=True)
class TableFlow:
    """One table of a pipeline: its spec, and its names in each stage."""

    pipeline: Flow
    spec: TableSpec

    @property
    def name(self) -> str:
        """The table's name, in the source and in the lake."""
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
        """The view without the rows that are deleted at the source."""
        return f"{self.name}_current"

    @property
    def lake_prefix(self) -> str:
        """The Hudi table's prefix in the bucket."""
        return object_names.lake_prefix(self.pipeline.name, self.name)

    def key(self, stage: str) -> dg.AssetKey:
        """Return the key of the table's asset of a stage."""
        return self.pipeline.key(stage, self.name)

    def tags(self, stage: str) -> dict[str, str]:
        """Return the tags of the table's asset of a stage."""
        return self.pipeline.tags(stage, self.name)

    def upsert_spec(self, location: S3Location, owner: str) -> UpsertSpec:
        """Return the spec of the upsert job for this table."""
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
        """Return the spec of the purge job for this table."""
        return PurgeSpec(self.upsert_spec(location, owner), seconds(self.pipeline.spec.replay_window))


def location(store: ObjectStore) -> S3Location:
    """Return the bucket's location in the form that the contract and the jobs use.

    Opens a TCP connection to the endpoint first. Raises Unreachable with the resource's hint if that fails: boto3 would
    retry for half a minute, and its error would not say what to do.
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
