"""HoodieStreamer as a process that reads raw objects and writes a Hudi table.

The settings are those of the EMR step that was published with the original pipeline
(github.com/cevoaustralia/data-lake-demo, hudi/steps/cdc-events.json and hudi/config), without the catalog. That step's
layout has a partition for each order; `partitioned=False` writes a table without partitions, as cdc-lake's is.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.peers.hoodie_streamer import environment
from benchmarks.peers.session import LIBRARIES
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import history
from infra.local.stack.endpoints import Endpoints

INTERVAL = 5
"""The smallest number of seconds between the beginnings of two batches."""
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
LOOK_SECONDS = 0.1
BOUND_SECONDS = 300.0
"""The time after which a commit that does not appear is an error."""


@dataclass(frozen=True)
class Streamed:
    """The table that it writes: a folder of raw objects, a folder of the table (keys), and the table's layout."""

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

    def commits(self, store: ObjectStore) -> list[str]:
        """Return the instants of the table's commits, oldest first."""
        return history.commits(store, f"{self.table}/")

    def checkpoint(self, store: ObjectStore, instant: str) -> int:
        """Return the commit's checkpoint: the newest modification time of the objects read, in ms since 1970.

        A commit without one, such as that of a clean, is 0.
        """
        found = store.get(f"{self.table}/.hoodie/{instant}.commit")
        return 0 if found is None else int(json.loads(found.body)["extraMetadata"].get(CHECKPOINT) or 0)

    def command(self, schema: Path, *, continuous: bool) -> list[str]:
        """Return the command line; without `continuous` the process ends after one batch."""
        spark, jars = environment.spark(), environment.jars()
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
            *(str(spark / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "2g"),
            *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
            *("--class", "org.apache.hudi.utilities.streamer.HoodieStreamer", str(jars / environment.UTILITIES)),
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
    """A process, and the file with its output."""

    process: psutil.Popen
    log: Path

    def await_true(self, met: Callable[[], bool]) -> None:
        """Wait until a condition is met. Raises RuntimeError after 5 minutes, or if the process fails."""
        end = time.monotonic() + BOUND_SECONDS
        while not met():
            if self.process.poll() or time.monotonic() > end:
                log = self.log.read_text(encoding="utf-8", errors="replace")
                cause = f"its process ended with {self.process.poll()}"
                if self.process.poll() is None:
                    cause = f"there was no commit within {BOUND_SECONDS:g} s"
                raise RuntimeError(f"Cannot measure HoodieStreamer: {cause}.\n{log[-4000:]}")
            time.sleep(LOOK_SECONDS)


@contextmanager
def running(table: Streamed, columns: str, *, continuous: bool) -> Iterator[StreamerProcess]:
    """Start a process that reads events with these Spark columns, and end it after the block."""
    at = table.at
    own = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    variables = {
        **own,
        "JAVA_HOME": str(at.java_home),
        "SPARK_HOME": str(environment.spark()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AWS_ACCESS_KEY_ID": at.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": at.s3_secret_key.get_secret_value(),
    }
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        schema, log = Path(folder, "schema.avsc"), Path(folder, "log")
        schema.write_text(json.dumps(avro_schema(columns)), encoding="utf-8")
        command = table.command(schema, continuous=continuous)
        with log.open("wb") as output:
            process = psutil.Popen(command, cwd=folder, env=variables, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield StreamerProcess(process, log)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)
