"""Load the classes that the Spark jobs need: `python -m infra.local.artifacts.spark_training <jars> <archive>`.

Starts a session with the settings of the jobs, passes rows through Python workers, and writes a Hudi table twice and
reads it, in a temporary folder. The JVM writes the archive when it ends, so the program waits for its end.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from infra.local.artifacts.class_path import recording

_END_SECONDS = 300
_HUDI = {
    "hoodie.table.name": "training",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.metadata.enable": "false",
    "hoodie.write.table.version": "6",
    "hoodie.index.type": "SIMPLE",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
}


def main(jars: str, target: str) -> None:
    """Run the training; the session's JVM writes the archive to `target`."""
    os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(sorted(str(each) for each in Path(jars).glob("*.jar")))
    with tempfile.TemporaryDirectory(prefix="cdc-lake-classes-") as folder:
        session = (
            SparkSession.builder.master("local[2]")
            .config(
                "spark.driver.extraJavaOptions",
                f"-Duser.timezone=UTC -XX:+UseSerialGC -Djol.skipHotspotSAAttach=true {recording(target)}",
            )
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .config("spark.ui.enabled", "false")
            .config("spark.local.dir", folder)
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
            .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
            .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
            .getOrCreate()
        )
        _work(session, f"{folder}/table")
        gateway: Any = SparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_END_SECONDS)


def _work(session: SparkSession, path: str) -> None:
    rows = session.range(0, 200, 1, 2).mapInArrow(_same, "id bigint").withColumn("text", F.col("id").cast("string"))
    rows = rows.withColumns({"day": F.current_date(), "price": (F.col("id") / 7).cast("decimal(12,2)")})
    parsed = rows.withColumn("json", F.from_json(F.to_json(F.struct("id", "text")), "id string, text string"))
    parsed.persist().groupBy("day").agg(F.sum("price"), F.max("json.id"), F.count_distinct("text")).collect()
    for _ in range(2):
        rows.write.format("hudi").options(**_HUDI).mode("append").save(path)
    stored = session.read.format("hudi").load(path)
    stored.join(rows.select("id"), "id", "left_anti").count()
    stored.groupBy("day").count().collect()


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    main(*sys.argv[1:])
