"""Write a Hudi table, with the checkpoint in the commit, and run its table services.

A change of a merge-on-read table goes to a log file beside the base file with its row, until a compaction merges both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.table.timeline import CHECKPOINT_KEY, RAW_BYTES_KEY, Checkpoint
from cdc_lake.jobs import store_errors
from cdc_lake.jobs.hudi import table_options
from cdc_lake.jobs.hudi.bulk_insert import bulk_insert
from cdc_lake.jobs.hudi.commit_hook import CommitHook, start_callback_server
from cdc_lake.jobs.hudi.key_column import with_key_column
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake.jobs.lake_table import Operation

# If all files are replaced, the new column types need not be compatible with the old ones. This option, despite its
# name, controls Hudi's check of the compatibility; no column is dropped.
_OVERWRITE_OPTIONS = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true"}
CLEAN_SECONDS = 600.0
"""A process that commits every few seconds cleans a table at this interval: planning a clean costs two Spark jobs."""
_NO_CLEAN = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
_cleaned: dict[str, float] = {}
"""The time of this process's last clean of each table (time.monotonic()), by URI."""
_FILES_MERGED = 16
"""A clustering writes files of up to this many times `small_bytes`: an upsert can still rewrite them."""


@dataclass(frozen=True)
class HudiTable:
    """One table: its name, absolute URI, key columns, and partition columns (may be empty).

    With `nullify`, a deleted row keeps only its key, its partition, and the columns that begin with `__`. The states of
    the last `history_hours` can be read.
    """

    name: str
    uri: str
    key: Sequence[str]
    partition_by: Sequence[str] = ()
    table_type: TableType = "cow"
    nullify: bool = False
    history_hours: int = 1

    def options(self) -> dict[str, str]:
        """Return the Hudi options of each write of this table."""
        return table_options.write_options(self.name, self.uri, self.partition_by, self.table_type, self.history_hours)

    def write(
        self,
        rows: DataFrame,
        checkpoint: Checkpoint,
        before_commit: Callable[[], None],
        check: Callable[[], None],
        operation: Operation = "upsert",
        raw_bytes: int | None = None,
    ) -> None:
        """Write rows by `operation`, upsert or one of the others, together with the checkpoint in one atomic commit.

        A bulk insert into an empty table writes one file for each Spark partition and table partition, sorted by key.
        `raw_bytes` are the bytes of the raw objects with the rows, which the commit stores too.

        `before_commit` is called after the data are written, right before Hudi completes the commit. If it raises, its
        exception is raised here and nothing is committed. `check` is called if Hudi fails, and raises LeaseLostError.
        """
        rows = with_key_column(self._nullified(rows) if self.nullify else rows, self.key)
        spark = rows.sparkSession
        start_callback_server(spark.sparkContext._gateway)
        started = time.monotonic()
        cleans = started >= _cleaned.get(self.uri, -math.inf) + CLEAN_SECONDS
        options = {
            **self.options(),
            **({} if cleans else _NO_CLEAN),
            "hoodie.datasource.write.operation": operation,
            **(_OVERWRITE_OPTIONS if operation == "insert_overwrite_table" else {}),
            CHECKPOINT_KEY: checkpoint.model_dump_json(),
            **({} if raw_bytes is None else {RAW_BYTES_KEY: str(raw_bytes)}),
        }
        hook = CommitHook(before_commit)
        write = bulk_insert if operation == "bulk_insert" else _write
        try:
            write(rows, options, hook)
        except (PySparkException, Py4JJavaError) as error:
            if hook.raised is not None:
                raise hook.raised from error
            if store_errors.store_error(str(error)) is None:
                check()  # raises LeaseLostError if the write failed because another writer took the lease
            raise
        if cleans:
            _cleaned[self.uri] = started

    def _nullified(self, rows: DataFrame) -> DataFrame:
        kept = {name.lower() for name in (*self.key, *self.partition_by)}
        emptied = [name for name in rows.columns if not name.startswith("__") and name.lower() not in kept]
        return rows.withColumns({name: F.when(~F.coalesce("__deleted", F.lit(False)), F.col(name)) for name in emptied})

    def roll_back(self, spark: SparkSession, instant: str) -> None:
        """Delete a commit's files, then its timeline entries; Hudi does this for a completed commit too."""
        with self._client(spark) as client:
            client.rollback(instant)

    def compact(self, spark: SparkSession, pending: Sequence[str], before_commit: Callable[[], None]) -> str | None:
        """Merge the log files of a merge-on-read table into new base files, in a commit that keeps the checkpoint.

        `pending` are compactions that were planned and not completed: the oldest is executed instead of a new one. An
        interrupted attempt at it is rolled back first. Returns the instant, or None without log files. Calls
        `before_commit` as write() does.
        """
        empty = spark.sparkContext._jvm.org.apache.hudi.common.util.Option.empty()  # type: ignore[union-attr]
        with self._client(spark) as client:
            if pending:
                instant = min(pending)
            else:
                planned = client.scheduleCompaction(empty)
                if not planned.isPresent():
                    return None
                instant = str(planned.get())
            metadata = client.compact(instant, False)
            before_commit()
            client.commitCompaction(instant, metadata, empty)
            return instant

    def cluster(
        self, spark: SparkSession, small_bytes: int, before_work: Callable[[], None], check: Callable[[], None]
    ) -> str | None:
        """Merge base files below `small_bytes`, with their log files, into larger ones.

        Returns the instant of the commit, which keeps the checkpoint; None if no partition has several small files.

        `before_work` is called between plan and work, since Hudi has no hook before it completes a clustering. A writer
        that loses its lease after that cannot complete it either: the next writer has deleted its plan
        (HudiLakeTable.recover()).
        `check` is called if Hudi fails, and raises LeaseLostError.
        """
        settings = {
            "hoodie.clustering.plan.strategy.small.file.limit": str(small_bytes),
            "hoodie.clustering.plan.strategy.target.file.max.bytes": str(_FILES_MERGED * small_bytes),
            "hoodie.clustering.plan.strategy.max.bytes.per.group": str(_FILES_MERGED * small_bytes),
            "hoodie.clustering.plan.strategy.max.num.groups": str(2**31 - 1),
            # A file that is alone in its partition stays as it is. With columns to sort by, Hudi would rewrite it too.
            "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
            "hoodie.avro.schema": self._avro_schema(spark),
            # Otherwise Hudi 1.2.0 reads a file group with log files into one record object, which it changes: the new
            # file has the last of the group's rows in place of each of them.
            "hoodie.datasource.write.row.writer.enable": "true",
        }
        with self._client(spark, settings) as client:
            planned = client.scheduleClustering(spark.sparkContext._jvm.org.apache.hudi.common.util.Option.empty())  # type: ignore[union-attr]
            if not planned.isPresent():
                return None
            instant = str(planned.get())
            before_work()
            try:
                client.cluster(instant, True)
            except Py4JJavaError:
                check()
                raise
            return instant

    def clean(self, spark: SparkSession, *, only_newest: bool) -> int:
        """Delete the files that no state of the last `history_hours` needs, and archive older commits of the timeline.

        With `only_newest`, only the newest state is kept: Hudi finds nothing to clean by hours if the newest commit is
        older than that. Returns the number of deleted files.
        """
        # Without this setting, Hudi cleans only after a new commit.
        settings = {"hoodie.clean.trigger.max.commits": "0"}
        if only_newest:
            settings |= {"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS", "hoodie.cleaner.commits.retained": "1"}
        with self._client(spark, settings) as client:
            cleaned = client.clean()
            client.archive()
        return 0 if cleaned is None else int(cleaned.getTotalFilesDeleted())

    def _avro_schema(self, spark: SparkSession) -> str:
        """Return the schema of the stored rows, which Hudi's client does not read from the table itself."""
        jvm: Any = spark.sparkContext._jvm
        conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark.sparkContext._jsc.hadoopConfiguration())
        tables = jvm.org.apache.hudi.common.table
        found = tables.HoodieTableMetaClient.builder().setConf(conf).setBasePath(self.uri).build()
        return str(tables.TableSchemaResolver(found).getTableSchema(False).toString())

    @contextmanager
    def _client(self, spark: SparkSession, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
        """Yield a Hudi client for this table, with the options of each write and these settings."""
        jvm: Any = spark.sparkContext._jvm
        options = jvm.org.apache.hudi.HoodieWriterUtils.parametersWithWriteDefaults(
            jvm.PythonUtils.toScalaMap({**self.options(), **(settings or {})})
        )
        client = jvm.org.apache.hudi.DataSourceUtils.createHoodieClient(
            spark.sparkContext._jsc,
            None,
            self.uri,
            self.name,
            jvm.scala.collection.JavaConverters.mapAsJavaMap(options),
        )
        try:
            yield client
        finally:
            client.close()


def _write(rows: DataFrame, options: Mapping[str, str], hook: CommitHook) -> None:
    """Write rows with Hudi's data source; `rows.write.format("hudi")` has no hook, its writer for streams has one."""
    spark = rows.sparkSession
    jvm: Any = spark.sparkContext._jvm
    nothing = jvm.scala.Option.empty()
    streaming = getattr(jvm.org.apache.hudi, "HoodieSparkSqlWriter$StreamingWriteParams")(
        nothing, nothing, nothing, jvm.scala.Option.apply(hook)
    )
    jvm.org.apache.hudi.HoodieSparkSqlWriter.write(
        spark._jsparkSession.sqlContext(),
        jvm.org.apache.spark.sql.SaveMode.Append,
        jvm.PythonUtils.toScalaMap(options),
        rows._jdf,
        jvm.scala.Option.apply(streaming),
        nothing,
        nothing,
    )
