"""Measure `verify` on a million rows, and check that it reports one changed cell.

Starts a separate stack (PostgreSQL and S3) and creates a source table and a lake table with the same rows. It measures
in one run, on the same rows: `verify`; a plain COPY of the table whose output is discarded (the lower limit of any
comparison that reads the source once); and the previous method, all rows of both sides in one Python process. Then one
cell of the lake is changed, and verify has to report it.

    python -m benchmarks.verify --rows 1000000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation
from rich.console import Console
from rich.table import Table

from benchmarks.measures import hudi_rs
from cdc_lake import jobs
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.source.visibility import Point
from cdc_lake.contract.table.event_order import Position
from cdc_lake.contract.table.timeline import CHECKPOINT_KEY, Checkpoint, last_commit
from cdc_lake.jobs import verify
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.hudi.key_column import with_key_column
from cdc_lake.jobs.verify import LakeState, SourceAccess, SourceTable, VerifyReport, VerifySpec
from cdc_lake_tests.helpers.local_stack import source_postgres
from infra.artifacts.spark_classes import java_options
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome
from resources.object_store import ObjectStore
from resources.postgres.exported_snapshot import consistent_point
from resources.postgres.resource import Postgres
from resources.spark.local import LocalSpark

SCHEMA = TableSchema(
    version=1,
    table="public.million",
    columns=(
        Column(name="id", type="bigint", nullable=False),
        Column(name="note", type="text"),
        Column(name="qty", type="integer"),
        Column(name="amount", type="numeric(12,2)"),
        Column(name="at", type="timestamp with time zone"),
    ),
    key=("id",),
)
SOURCE_SQL = """
create table million as
select n::bigint as id,
       case when n %% 7 = 0 then null else 'note ' || n || repeat(' and more', (n %% 20)::int) end as note,
       (n * 3 %% 1000)::int as qty, ((n %% 1000000) / 100.0)::numeric(12,2) as amount,
       timestamptz '2024-01-01 00:00:00.000001Z' + n * interval '1 second' as at
  from generate_series(1, %s) n
"""
LAKE_SQL = """
select id, case when id % 7 = 0 then null else concat('note ', id, repeat(' and more', int(id % 20))) end as note,
       int(id * 3 % 1000) as qty, cast((id % 1000000) / 100.0 as decimal(12,2)) as amount,
       timestamp_micros(1704067200000001 + id * 1000000) as at from numbers
"""


@dataclass(frozen=True)
class VerifyBenchmark:
    """The engines and the lake table."""

    postgres: Postgres
    spark: SparkSession
    spec: UpsertSpec
    rows: int

    def fill(self) -> None:
        """Create the same rows on both sides; each engine computes them itself."""
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(SOURCE_SQL, (self.rows,))
            cursor.execute("alter table million add primary key (id)")
            cursor.execute("vacuum analyze million")
        self.spark.range(1, self.rows + 1).createOrReplaceTempView("numbers")
        marks = {"__op": "r", "__db": "devdb", "__schema": "public", "__table": "million", "__snapshot": "true"}
        rows = self.spark.sql(LAKE_SQL).withColumns({name: F.lit(value) for name, value in marks.items()})
        numbers = {"__lsn": 1, "__txid": 3, "__source_ts_ms": 1}
        rows = rows.withColumns({name: F.lit(value).cast("bigint") for name, value in numbers.items()})
        order = Position(0, False, 1).encode()
        self.write(rows.withColumns({"__deleted": F.lit(False), "__order": F.lit(order)}), "bulk_insert")

    def write(self, rows: DataFrame, operation: str) -> None:
        """Write a commit with a checkpoint."""
        checkpoint = Checkpoint(topic=self.spec.topic, topic_id="A", manifest=0, schema_version=1)
        options = {
            **self.spec.hudi_table().options(),
            "hoodie.datasource.write.operation": operation,
            "hoodie.bulkinsert.shuffle.parallelism": "4",
            CHECKPOINT_KEY: checkpoint.model_dump_json(),
        }
        with_key_column(rows, self.spec.key).write.format("hudi").options(**options).mode("append").save()

    def change_one_cell(self) -> None:
        """Change the quantity of one row in the middle."""
        row = self.spark.read.format("hudi").load(self.spec.uri()).where(F.col("id") == self.rows // 2)
        kept = row.select(*(name for name in row.columns if not name.startswith("_hoodie_")))
        self.write(kept.withColumn("qty", F.col("qty") + 1), "upsert")

    def verify(self) -> VerifyReport:
        """Run verify and return its report."""
        commit = last_commit(self.spec.location.store(), self.spec.prefix)
        if commit is None:
            raise RuntimeError(f"{self.spec.uri()} has no commit")
        server = self.postgres
        access = SourceAccess(server.host, server.port, server.database, server.user, server.password)
        with consistent_point(server, "none") as point:
            pages = point.files("public", "million").pages
            return verify.run(
                self.spark,
                VerifySpec(
                    location=self.spec.location,
                    pipeline=self.spec.pipeline,
                    topic=self.spec.topic,
                    uri=self.spec.uri(),
                    versions=[SCHEMA],
                    source=SourceTable(access, point.snapshot_id, "public", "million", pages),
                    point=Point(0, point.lsn, point.horizon, point.snapshot.xmax, point.snapshot.in_progress),
                    lake=LakeState(commit.instant, 0),
                ),
            )

    def copy(self) -> int:
        """COPY the table, discard the output, and return its size in bytes."""
        sink = _Sink()
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.copy_expert("copy million to stdout (format csv)", sink)
        return sink.bytes

    def one_process(self) -> int:
        """Compare all rows of both sides as Python values in this process; return the number of keys that differ."""
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute("select id, note, qty, amount, at from million")
            source_rows = {row[0]: (*row[1:4], row[4].replace(tzinfo=None)) for row in cursor.fetchall()}
        lake_rows = {
            row["id"]: (row["note"], row["qty"], row["amount"], row["at"].replace(tzinfo=None))
            for batch in hudi_rs.batches(self.spec.location, self.spec.prefix.rstrip("/"))
            for row in batch.to_pylist()
        }
        return sum(1 for key in source_rows.keys() | lake_rows.keys() if source_rows.get(key) != lake_rows.get(key))


class _Sink:
    """Counts the bytes that are written to it."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: bytes) -> None:
        """Count the bytes of a row."""
        self.bytes += len(data)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the elapsed seconds and the result of `work`."""
    started = time.monotonic()
    found = work()
    return time.monotonic() - started, found


def main() -> int:
    """Run it; return 0 if verify reported the changed cell and nothing else, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's user needs access to the subfolder
        stack = Stack(StackHome(Path(folder) / "home"))
        try:
            stack.up(("postgres", "s3"))
            return report(engines(load_endpoints(Path(folder) / "home"), rows))
        finally:
            stack.down()


def engines(at: Endpoints, rows: int) -> VerifyBenchmark:
    """Return the benchmark with clients of a running stack."""
    secret = at.s3_secret_key.get_secret_value()
    location = S3Location("bench", at.s3_endpoint, at.region, at.s3_access_key, secret)
    boto3.client(
        "s3",
        endpoint_url=at.s3_endpoint,
        region_name=at.region,
        aws_access_key_id=at.s3_access_key,
        aws_secret_access_key=secret,
    ).create_bucket(Bucket="bench")
    store = ObjectStore(bucket="bench", endpoint_url=at.s3_endpoint, access_key=at.s3_access_key, secret_key=secret)
    properties = [str(jobs.FOLDER / "spark.properties"), str(jobs.FOLDER / "spark-local.properties")]
    log = str(jobs.FOLDER / "log4j2-local.properties")
    session = LocalSpark(
        java_home=str(at.java_home),
        jars=str(at.spark_jars),
        properties=properties,
        log4j=log,
        java_options=java_options(at.java_home, at.spark_jars),
        store=store,
    ).session()
    postgres = source_postgres(at)
    return VerifyBenchmark(
        postgres, session, UpsertSpec(location, "bench", "bench", "public.million", "million", ("id",)), rows
    )


def report(benchmark: VerifyBenchmark) -> int:
    """Measure and print; return the exit code."""
    benchmark.fill()
    _, cold = timed(benchmark.verify)  # a session's first job takes seconds longer
    seconds, clean = timed(benchmark.verify)
    copy_seconds, size = timed(benchmark.copy)
    old_seconds, old_different = timed(benchmark.one_process)
    benchmark.change_one_cell()
    changed_seconds, found = timed(benchmark.verify)
    table = Table(
        "what",
        "seconds",
        "rows/s",
        "relative to verify",
        title=f"{benchmark.rows:,} rows, {size / 2**20:,.0f} MB of CSV",
    )
    for name, took in (
        ("verify", seconds),
        ("verify, one cell changed and looked up", changed_seconds),
        ("plain COPY of the source, no comparison", copy_seconds),
        ("both sides in one Python process", old_seconds),
    ):
        table.add_row(name, f"{took:.1f}", f"{benchmark.rows / took:,.0f}", f"{took / seconds:.2f}x")
    console = Console(width=110)
    console.print(table)
    console.print(f"verify by phase: {dict(clean.seconds)}; one cell changed: {dict(found.seconds)}")
    console.print(f"differences: {[(dict(one.key), dict(one.columns)) for one in found.differences]}")
    key, qty = str(benchmark.rows // 2), benchmark.rows // 2 * 3 % 1000
    named = [(one.kind, one.key, one.columns) for one in found.differences]
    expected = [("different", {"id": key}, {"qty": (str(qty), str(qty + 1))})]
    passed = cold.clean and clean.clean and old_different == 0 and named == expected and found.different == 1
    console.print(
        "verify reported exactly the changed cell"
        if passed
        else "[red]verify did not report exactly the changed cell[/red]"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
