"""Tables that plain Spark fills from the same raw objects: Iceberg, Delta, and Hudi without cdc-lake.

Each does what its documentation recommends for change data: the newest event of each key is merged if it is newer than
the stored row. A first load is written as it arrives. None of them keeps a checkpoint with the data
(benchmarks/README.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from benchmarks.goals import DELTA, ICEBERG, PLAIN_HUDI

ORDER = "__lsn"
ICEBERG_CATALOG = "ice"
"""The name of Iceberg's catalog in iceberg.properties."""
TableType = Literal["cow", "mor"]


@dataclass(frozen=True)
class Events:
    """The columns of flattened change events as Spark's JSON reader reads them, and the key."""

    columns: str
    key: str

    def read(self, spark: SparkSession, objects: Sequence[str]) -> DataFrame:
        """Return the events in these JSON objects (URIs)."""
        return spark.read.schema(self.columns).json(list(objects))

    def newest(self, rows: DataFrame) -> DataFrame:
        """Return the newest event of each key."""
        window = Window.partitionBy(self.key).orderBy(F.col(ORDER).desc())
        return rows.withColumn("__rank", F.row_number().over(window)).where("__rank = 1").drop("__rank")


@dataclass(frozen=True)
class PeerTable(ABC):
    """A table of another system in `folder`, a URI; `table_name` is unique in the session."""

    spark: SparkSession
    events: Events
    folder: str
    table_name: str
    table_type: TableType = "mor"

    system: ClassVar[str]
    """The name in the results."""
    format: ClassVar[str]
    """The name of its settings file, and the beginning of its jars' names."""

    @property
    def uri(self) -> str:
        """The URI of a table without a catalog (Delta, Hudi). Iceberg's catalog chooses the location itself."""
        return f"{self.folder}/{self.table_name}"

    def load(self, objects: Sequence[str]) -> None:
        """Create the table with the rows of a snapshot, whose keys are unique."""
        self.create(self.events.read(self.spark, objects))

    def apply(self, objects: Sequence[str]) -> None:
        """Merge the events of these objects in one commit."""
        self.merge(self.events.newest(self.events.read(self.spark, objects)))

    @abstractmethod
    def create(self, rows: DataFrame) -> None:
        """Create the table with these rows."""

    @abstractmethod
    def merge(self, rows: DataFrame) -> None:
        """Insert the rows, and update those that are older in the table."""

    @abstractmethod
    def maintain(self) -> None:
        """Run the format's table service: rewrite_data_files, OPTIMIZE, or Hudi's compaction (merge-on-read)."""

    @abstractmethod
    def rows(self) -> DataFrame:
        """Return the table's rows."""

    def _merge_sql(self, target: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView("changes")
        self.spark.sql(
            f"MERGE INTO {target} t USING changes s ON t.{self.events.key} = s.{self.events.key} "
            f"WHEN MATCHED AND s.{ORDER} > t.{ORDER} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


class IcebergTable(PeerTable):
    """Iceberg, format version 2, in a Hadoop catalog."""

    system = ICEBERG
    format = "iceberg"

    @property
    def _name(self) -> str:
        return f"{ICEBERG_CATALOG}.peers.{self.table_name}"

    def create(self, rows: DataFrame) -> None:
        mode = {"cow": "copy-on-write", "mor": "merge-on-read"}[self.table_type]
        writer = rows.writeTo(self._name).using("iceberg").tableProperty("format-version", "2")
        for operation in ("merge", "update", "delete"):
            writer = writer.tableProperty(f"write.{operation}.mode", mode)
        writer.create()

    def merge(self, rows: DataFrame) -> None:
        self._merge_sql(self._name, rows)

    def maintain(self) -> None:
        self.spark.sql(
            f"CALL {ICEBERG_CATALOG}.system.rewrite_data_files(table => 'peers.{self.table_name}', "
            "options => map('delete-file-threshold', '1'))"
        )

    def rows(self) -> DataFrame:
        return self.spark.table(self._name)


class DeltaTable(PeerTable):
    """Delta, which rewrites files (its default), or marks rows in deletion vectors."""

    system = DELTA
    format = "delta"

    def create(self, rows: DataFrame) -> None:
        vectors = str(self.table_type == "mor").lower()
        rows.write.format("delta").option("delta.enableDeletionVectors", vectors).save(self.uri)

    def merge(self, rows: DataFrame) -> None:
        self._merge_sql(f"delta.`{self.uri}`", rows)

    def maintain(self) -> None:
        self.spark.sql(f"OPTIMIZE delta.`{self.uri}`")

    def rows(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.uri)


class PlainHudiTable(PeerTable):
    """Hudi, written by Spark's data source with cdc-lake's index and table version.

    The metadata table and automatic upgrades are disabled, as cdc-lake's readers require.
    """

    system = PLAIN_HUDI
    format = "hudi"

    def create(self, rows: DataFrame) -> None:
        self._write(rows, "bulk_insert")

    def merge(self, rows: DataFrame) -> None:
        self._write(rows, "upsert")

    def _write(self, rows: DataFrame, operation: str) -> None:
        options = {
            **self._table_options(),
            "hoodie.table.name": self.table_name,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[self.table_type],
            "hoodie.datasource.write.recordkey.field": self.events.key,
            "hoodie.datasource.write.precombine.field": ORDER,
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.index.type": "BLOOM",
            "hoodie.upsert.shuffle.parallelism": "4",
            "hoodie.bulkinsert.shuffle.parallelism": "4",
            "hoodie.compact.inline": "false",
        }
        rows.write.format("hudi").options(**options).mode("append").save(self.uri)

    def maintain(self) -> None:
        if self.table_type == "mor":
            options = ",".join(f"{name}={value}" for name, value in self._table_options().items())
            options += ",hoodie.compact.inline.max.delta.commits=1"
            self.spark.sql(
                f"CALL run_compaction(op => 'scheduleAndExecute', path => '{self.uri}', options => '{options}')"
            )

    def rows(self) -> DataFrame:
        return self.spark.read.format("hudi").load(self.uri)

    @staticmethod
    def _table_options() -> dict[str, str]:
        return {
            "hoodie.write.table.version": "6",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": "false",
        }


PEERS: Mapping[str, type[PeerTable]] = {peer.format: peer for peer in (PlainHudiTable, IcebergTable, DeltaTable)}
