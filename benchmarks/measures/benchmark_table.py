"""One table of one pipeline on a separate stack (S3, Kafka, Spark); batches are landed and applied as by the assets.

A proxy in front of the store can count the requests of Python, of its workers and of Spark's S3A.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from benchmarks.measures.usage import measured
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import chain_verification
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spark_jobs.small_landings import SmallLandings
from cdc_lake.pipeline.spec.pipeline import PipelineSpec
from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from cdc_lake_tests.helpers.s3_fault_proxy import FaultProxy, fault_proxy
from cdc_lake_tests.integration.jobs.engines import (
    BUCKET,
    NO_ADDITIONS,
    Engines,
    SparkAdditions,
    make_bucket,
    running_spark,
)
from infra.local.stack.attach import load_endpoints
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.spark.job_interface import SparkJobs

S = TypeVar("S")
R = TypeVar("R")

KEYS = 50
QUEUED = 50_000
"""Records that wait in the producer; its queue has room for 100,000."""
COLUMNS = (
    Column(name="id", type="integer", nullable=False),
    Column(name="qty", type="bigint"),
    Column(name="note", type="text"),
)
SPEC = {
    "name": "bench",
    "source": {"database": "devdb", "schema": "public", "tables": ["orders"], "publication": "bench"},
    "stream": {"prefix": "bench"},
    "tables": [{"name": "orders", "key": ["id"]}],
    "targets": [{"name": "lake", "database": "bench"}],
}


@dataclass(frozen=True)
class Cost:
    """The duration of a step, the CPU seconds of all processes, and the number of its requests to the store."""

    seconds: float
    cpu_seconds: float
    requests: int


@dataclass(frozen=True)
class _Session:
    """Runs jobs in a session."""

    session: SparkSession

    def run(self, job: Callable[[SparkSession, S], R], spec: S) -> R:
        """Run a job and return its report."""
        return job(self.session, spec)


@dataclass
class BenchmarkTable:
    """One table of one pipeline on running engines; `direct` is the store without the proxy, for the fixture.

    Records have `keys` distinct keys and this note.
    """

    table: PipelineTable
    kafka: Kafka
    spark: SparkSession
    store: S3Location
    direct: S3Location
    proxy: FaultProxy | None
    keys: int = KEYS
    note: str | None = None

    def __post_init__(self) -> None:
        self.kafka.ensure_topic(self.table.topic, 1)
        schema = captured_schema.TableSchema(
            version=0, table=self.table.source_table, columns=tuple(COLUMNS), key=("id",)
        )
        captured_schema.record(self.direct.store(), self.table.pipeline.name, schema)

    @property
    def chain(self) -> Chain:
        """The topic's chain, whose requests are counted."""
        return Chain(self.store.store(), self.table.pipeline.name, self.table.topic)

    def send(self, first: int, end: int) -> None:
        """Produce the records of offsets `first` to `end` - 1."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap})
        for offset in range(first, end):
            producer.produce(self.table.topic, value=self.record(offset), partition=0)
            if (offset % QUEUED == 0 or offset == end - 1) and producer.flush(60):
                raise RuntimeError(f"Cannot produce to {self.table.topic}: Kafka did not answer within 60 s.")

    def land(self) -> None:
        """Land the new records, with the same steps as the sensor and the raw asset."""
        found = table_progress.landing_input(self.table, self.kafka, self.store)
        if found.offsets_behind <= 0:
            raise RuntimeError(f"Cannot measure a batch: topic {self.table.topic} has no new records.")
        found = table_progress.landing_input(self.table, self.kafka, self.store)
        # SmallLandings runs no other method of SparkJobs.
        SmallLandings(cast("SparkJobs", _Session(self.spark)), self.kafka).run(land.run, found.spec)
        head = found.chain.head()
        if head is not None:
            found.chain.count_records(head)
        table_progress.raw_watermark(self.store.store(), self.table, found.state)

    def check(self) -> None:
        """Verify the new manifests, as the light check does."""
        require_clean(chain_verification.verify_new(self.chain))

    def check_whole_chain(self) -> None:
        """Verify the whole chain, as the check manifests_whole does."""
        require_clean(chain_verification.verify_whole(self.chain))

    def apply(self) -> None:
        """Apply the new manifests to the table, with the same steps as the sensor and the lake asset."""
        spec = self.table.upsert_spec(self.store, owner="bench")
        commit = timeline.last_commit(self.store.store(), spec.prefix)
        if not upsert.new_manifests(self.store.store(), spec, commit):
            raise RuntimeError(f"Cannot measure a batch: lake table {self.table.name} has no new manifests to apply.")
        upsert.run(self.spark, spec)

    def record(self, offset: int) -> bytes:
        """Return the record of an offset."""
        marks = {"__op": "u", "__db": "devdb", "__schema": "public", "__table": "orders", "__lsn": offset}
        more = {"__txId": offset, "__snapshot": "false", "__source_ts_ms": offset, "__deleted": "false"}
        row = {"id": offset % self.keys, "qty": offset, "note": self.note}
        return json.dumps({**row, **marks, **more}).encode()

    def cost(self, work: Callable[[], None]) -> Cost:
        """Run `work` and return its cost."""
        before = self._requests()
        _, used = measured(work)
        return Cost(used.seconds, used.cpu_seconds, self._requests() - before)

    def _requests(self) -> int:
        return 0 if self.proxy is None else sum(self.proxy.answered.values())

    def batch(self, records: int = 1) -> dict[str, Cost]:
        """Land, check and apply new records; return the cost of each step and of all."""
        offset = self.kafka.end_offsets(self.table.topic)[0]
        self.send(offset, offset + records)
        found = {"land": self.cost(self.land), "light check": self.cost(self.check), "apply": self.cost(self.apply)}
        costs = found.values()
        whole = Cost(sum(c.seconds for c in costs), sum(c.cpu_seconds for c in costs), sum(c.requests for c in costs))
        return {**found, "batch": whole}


def require_clean(found: chain_verification.VerifyResult) -> None:
    """Raise RuntimeError if the fixture's chain is damaged."""
    if found.damaged:
        raise RuntimeError(f"Cannot measure: {len(found.damaged)} objects are missing or changed: {found.damaged[:3]}.")


@contextmanager
def running_table(*, counted: bool, additions: SparkAdditions = NO_ADDITIONS) -> Iterator[BenchmarkTable]:
    """Start the engines and yield the table; `counted` counts the requests to the store, which slows them."""
    with (
        scratch_home() as home,
        tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as scratch,
        running_stack(home, ("s3", "kafka")),
    ):
        at = load_endpoints(home)
        with fault_proxy(at.s3_endpoint) if counted else nullcontext() as proxy:
            secret = at.s3_secret_key.get_secret_value()
            proxied, direct = (
                ObjectStore(
                    bucket=BUCKET,
                    region=at.region,
                    endpoint_url=to,
                    access_key=at.s3_access_key,
                    secret_key=secret,
                )
                for to in (at.s3_endpoint if proxy is None else proxy.endpoint, at.s3_endpoint)
            )
            make_bucket(location(direct))
            with running_spark(at, proxied, Path(scratch), additions) as spark:
                engines = Engines(location(proxied), Kafka(bootstrap=at.kafka_bootstrap), spark)
                yield on_engines(engines, location(direct), proxy)


def on_engines(engines: Engines, direct: S3Location | None = None, proxy: FaultProxy | None = None) -> BenchmarkTable:
    """Return the table on engines that run. `direct` is the store without the proxy, if there is one."""
    table = Pipeline(PipelineSpec.model_validate(SPEC), Path()).tables[0]
    return BenchmarkTable(table, engines.kafka, engines.spark, engines.location, direct or engines.location, proxy)
