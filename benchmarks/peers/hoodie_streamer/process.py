"""HoodieStreamer as a process that reads raw objects and writes a Hudi table.

The settings are those of the EMR step that was published with the original pipeline
(github.com/cevoaustralia/data-lake-demo, hudi/steps/cdc-events.json and hudi/config), without the catalog. That step's
layout has a partition for each order; `partitioned=False` writes a table without partitions, as cdc-lake's is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.measures.commit_times import POLL_SECONDS, CommitTimes
from benchmarks.measures.usage import Usage, cpu_seconds
from benchmarks.peers import separate_packages
from benchmarks.peers.session import LIBRARIES
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import history
from infra.artifacts import artifacts
from infra.artifacts.artifacts import HOODIE_STREAMER
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.process import end

INTERVAL = 5
"""The minimum number of seconds between the starts of two batches."""
PARTITIONED = {
    "hoodie.datasource.write.partitionpath.field": "customer_id,order_id",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
UNPARTITIONED = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}
PARALLELISM = {f"hoodie.{what}.shuffle.parallelism": "2" for what in ("upsert", "insert", "delete", "bulkinsert")}
AVRO_TYPES = {"int": "int", "bigint": "long", "string": "string"}
CHECKPOINT = "deltastreamer.checkpoint.key"
STOP_SECONDS = 60
BOUND_SECONDS = 900.0


def spark() -> Path:
    """Return the folder of HoodieStreamer's Spark; install it if it is missing."""
    lock = Path(__file__).with_name("requirements.lock")
    return separate_packages.installed("hoodie-streamer-spark", lock) / "pyspark"


@dataclass(frozen=True)
class StreamerTable:
    """A table that HoodieStreamer writes: the keys of the source folder and of the table, and the layout."""

    at: Endpoints
    source: str
    table: str
    partitioned: bool = False

    def settings(self, schema: Path) -> Mapping[str, str]:
        """Return the properties; `schema` is the file with the events' Avro schema."""
        return {
            **PARALLELISM,
            **(PARTITIONED if self.partitioned else UNPARTITIONED),
            "hoodie.datasource.write.recordkey.field": "order_id",
            "hoodie.streamer.schemaprovider.source.schema.file": schema.as_uri(),
            "hoodie.streamer.source.dfs.root": self._uri(self.source),
            "hoodie.parquet.small.file.limit": str(128 * 2**20),
        }

    def commit_times(self, store: ObjectStore) -> CommitTimes:
        """Return the times of the table's commits; a position is a time in ms since 1970 (`checkpoint`)."""
        return CommitTimes(lambda: history.commits(store, f"{self.table}/"), lambda name: self.checkpoint(store, name))

    def checkpoint(self, store: ObjectStore, instant: str) -> int:
        """Return a commit's checkpoint: the newest modification time of the objects read, in ms since 1970."""
        found = store.get(f"{self.table}/.hoodie/{instant}.commit")
        if found is None:
            raise RuntimeError(f"Cannot measure HoodieStreamer: commit {instant} of {self.table} does not exist.")
        return int(json.loads(found.body)["extraMetadata"][CHECKPOINT])

    def command(self, schema: Path, *, continuous: bool) -> list[str]:
        """Return the command line; without `continuous` the process ends after one batch."""
        jars = artifacts.jars(HOODIE_STREAMER)
        [utilities] = jars.glob("hudi-utilities_*.jar")
        libraries = [jar for jar in self.at.spark_jars.glob("*.jar") if jar.name.startswith(LIBRARIES)]
        s3a = "spark.hadoop.fs.s3a"
        conf = {
            "spark.driver.extraClassPath": ":".join(map(str, sorted([*jars.glob("*.jar"), *libraries]))),
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.ui.enabled": "false",
            f"{s3a}.endpoint": self.at.s3_endpoint,
            f"{s3a}.path.style.access": "true",
            f"{s3a}.connection.ssl.enabled": "false",
        }
        return [
            *(str(spark() / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "2g"),
            *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
            *("--class", "org.apache.hudi.utilities.streamer.HoodieStreamer", str(utilities)),
            *("--table-type", "COPY_ON_WRITE", "--op", "UPSERT", "--source-ordering-field", "__source_ts_ms"),
            *("--target-base-path", self._uri(self.table), "--target-table", "cdc_events"),
            *("--source-class", "org.apache.hudi.utilities.sources.JsonDFSSource"),
            *("--schemaprovider-class", "org.apache.hudi.utilities.schema.FilebasedSchemaProvider"),
            *(part for pair in self.settings(schema).items() for part in ("--hoodie-conf", "=".join(pair))),
            *(("--continuous", "--min-sync-interval-seconds", str(INTERVAL)) if continuous else ()),
        ]

    def _uri(self, key: str) -> str:
        return f"s3a://{self.at.bucket}/{key}"


def avro_schema(columns: str) -> Mapping[str, object]:
    """Return the Avro schema of rows with these Spark columns, such as `id bigint, note string`, all nullable."""
    pairs = [column.split() for column in columns.split(", ")]
    fields = [{"name": name, "type": ["null", AVRO_TYPES[kind]], "default": None} for name, kind in pairs]
    return {"type": "record", "name": "event", "namespace": "peers", "fields": fields}


@dataclass(frozen=True)
class StreamerProcess:
    """A process, the time of its start in seconds since 1970, and the file with its output."""

    process: psutil.Popen
    started: float
    log: Path

    def usage(self) -> Usage:
        """Return the seconds since the start, and the CPU seconds."""
        return Usage(time.time() - self.started, cpu_seconds(self.process))

    def await_true(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true. Raises RuntimeError after 15 minutes, or if the process ends before."""
        deadline = self.started + BOUND_SECONDS
        while not condition():
            code = self.process.poll()
            if code is not None and not condition():
                raise self._error(f"its process ended with {code}")
            if time.time() > deadline:
                raise self._error(f"it did not commit within {BOUND_SECONDS:g} s")
            time.sleep(POLL_SECONDS)

    def _error(self, cause: str) -> RuntimeError:
        log = self.log.read_text(encoding="utf-8", errors="replace")
        return RuntimeError(f"Cannot measure HoodieStreamer: {cause}.\n{log[-4000:]}")


@contextmanager
def running_streamer(table: StreamerTable, columns: str, *, continuous: bool) -> Iterator[StreamerProcess]:
    """Start a process that reads events with these Spark columns, and end it after the block."""
    at = table.at
    variables = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "JAVA_HOME": str(at.java_home),
        "SPARK_HOME": str(spark()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AWS_ACCESS_KEY_ID": at.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": at.s3_secret_key.get_secret_value(),
    }
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        schema, log = Path(folder, "schema.avsc"), Path(folder, "log")
        schema.write_text(json.dumps(avro_schema(columns)), encoding="utf-8")
        command = table.command(schema, continuous=continuous)
        with log.open("wb") as output:
            started = time.time()
            process = psutil.Popen(
                command, cwd=folder, env=variables, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            yield StreamerProcess(process, started, log)
        finally:
            end([process], signal.SIGTERM, STOP_SECONDS)
