"""Read a lake table's rows as of a state: a commit of a Hudi table, or a manifest of a Parquet target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.value_rules import ValueRules
from cdc_lake.jobs.apply import typed_reader


@dataclass(frozen=True)
class LakeState:
    """The table as of a commit: it has applied the manifests up to and including `manifest`.

    `instant` is the commit's instant. A Parquet target has no commits: its `instant` identifies the manifest.
    """

    instant: str
    manifest: int


class LakeTableSpec(Protocol):
    """The fields of a job's spec that identify the lake table, and its topic's manifests.

    `versions` are the captured schemas, oldest first, and `values` the table's rules for values that the lake's types
    cannot represent. `boundary` is the boundary of a Parquet target's view (contract/table/latest_rows.py), None for a
    Hudi table, which is at `uri`.
    """

    @property
    def location(self) -> S3Location: ...
    @property
    def pipeline(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def versions(self) -> Sequence[TableSchema]: ...
    @property
    def values(self) -> ValueRules: ...
    @property
    def boundary(self) -> str | None: ...


def rows(spark: SparkSession, table: LakeTableSpec, state: LakeState) -> DataFrame:
    """Return the table's rows as of a state, including deleted rows, with the lake's columns."""
    if table.boundary is None:
        return spark.read.format("hudi").option("as.of.instant", state.instant).load(table.uri)
    manifests = manifests_up_to(table, state)
    return typed_reader.latest_rows(spark, table.location, manifests, table.versions, table.boundary, table.values)


def manifests_up_to(table: LakeTableSpec, state: LakeState, first: int = 0) -> list[Manifest]:
    """Return the manifests after number `first` that `state` has applied, oldest first."""
    if first >= state.manifest:
        return []
    found = []
    for manifest in Chain(table.location.store(), table.pipeline, table.topic).since(first):
        found.append(manifest)
        if manifest.number == state.manifest:
            break
    return found
