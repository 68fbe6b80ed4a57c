"""cdc-lake's table, with the interface of the other systems' tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract.table.timeline import Commit
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.maintenance import cluster, compact
from cdc_lake.jobs.maintenance.cluster import ClusterSpec
from cdc_lake.jobs.maintenance.compact import CompactSpec


@dataclass(frozen=True)
class OurTable:
    """A table that the jobs write; it reads the new manifests itself, and ignores the objects that it is given."""

    spark: SparkSession
    spec: UpsertSpec

    def load(self, objects: Sequence[str]) -> None:
        """Apply the manifests of a first load."""
        self.apply(objects)

    def apply(self, _objects: Sequence[str]) -> Commit:
        """Apply the new manifests; return the commit."""
        commit = upsert.run(self.spark, self.spec).commit
        if commit is None:
            raise RuntimeError(f"Cannot measure a batch: table {self.spec.table} has no new manifests to apply.")
        return commit

    def maintain(self) -> None:
        """Compact log files, and cluster small files."""
        if self.spec.table_type == "mor":
            compact.run(self.spark, CompactSpec(self.spec))
        cluster.run(self.spark, ClusterSpec(self.spec))

    def rows(self) -> DataFrame:
        """Return the table's rows."""
        return self.spec.lake_table(self.spec.location.store()).rows(self.spark)

    def files_with(self, condition: str) -> int:
        """Return how many files have rows that meet an SQL condition."""
        rows = self.spark.read.format("hudi").load(self.spec.uri()).where(condition)
        return rows.select("_hoodie_file_name").distinct().count()
