"""One table of one pipeline on a separate stack (S3, Kafka, Spark); batches are landed and applied as by the assets.

A proxy in front of the store can count the requests of Python, of its workers and of Spark's S3A.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar, cast

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from benchmarks.measures.usage import measured
from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.source.topic_records import fingerprint
from cdc_lake.contract.table import instants, timeline, timeline_files
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

KEYS, WRITERS = 50, 8
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
            producer.produce(self.table.topic, value=self._record(offset), partition=0)
            if (offset % QUEUED == 0 or offset == end - 1) and producer.flush(60):
                raise RuntimeError(f"Cannot produce to {self.table.topic}: Kafka did not answer within 60 s.")

    def write_history(self, length: int) -> None:
        """Extend the chain to `length` manifests of one record each; count, verify and apply them without the proxy."""
        chain = Chain(self.direct.store(), self.table.pipeline.name, self.table.topic)
        first = chain.length()
        self.send(first, length)
        found = self.kafka.topic(self.table.topic)
        topic_id = "" if found is None else found.topic_id
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda part: self._write(part, topic_id), parts(first, length)))
        head = chain.head()
        if head is None or head.number != length or chain.count_records(head) != length:
            raise RuntimeError(f"Cannot write a history of {length} manifests: the chain ends at {head}.")
        require_clean(chain_verification.verify_new(chain))
        upsert.run(self.spark, self.table.upsert_spec(self.direct, owner="bench"))

    def write_commits(self, count: int) -> None:
        """Put older commits into the timeline, up to `count`: copies of the newest one, within the last hour.

        Each has the three files that Hudi writes; the copies name the newest commit's data files.
        """
        folder, store = f"{self.table.lake_prefix}.hoodie/", self.direct.store()
        names = timeline_files.names(store, self.table.lake_prefix)
        completed = sorted(name for name in names if name.endswith(".commit"))
        newest, oldest = completed[-1].removesuffix(".commit"), instants.time_of(completed[0])
        files = {each: store.get(f"{folder}{newest}{each}") for each in (".commit.requested", ".inflight", ".commit")}
        begin = max(oldest - timedelta(minutes=59), datetime.now(UTC) - timedelta(minutes=59))
        step = (oldest - begin) / (count + 1)

        def put(number: int) -> None:
            instant = (begin + number * step).strftime("%Y%m%d%H%M%S%f")[:17]
            for suffix, stored in files.items():
                if stored is None:
                    raise RuntimeError(f"Cannot write commits: {folder}{newest}{suffix} is missing.")
                store.put_new(f"{folder}{instant}{suffix}", stored.body)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(put, range(1, count - len(completed) + 1)))

    def _write(self, offsets: range, topic_id: str) -> None:
        store = self.direct.store()
        pipeline, topic = self.table.pipeline.name, self.table.topic
        for offset in offsets:
            body = raw_objects.join_lines([self._record(offset)])
            key = ObjectName(pipeline, topic, 0, offset, offset, raw_objects.EXTENSION).key
            last = LastRecord(offset=offset, fingerprint=fingerprint(self._record(offset)))
            item = LandedObject(
                key=key,
                partition=0,
                first=offset,
                last=offset,
                records=1,
                bytes=len(body),
                sha256=hashlib.sha256(body).hexdigest(),
                etag=store.put_new(key, body),
                runs=((offset, 1),),
            )
            manifest = Manifest(
                number=offset + 1,
                attempt=f"history {offset}",
                pipeline=pipeline,
                topic=topic,
                topic_id=topic_id,
                spans=(Span(partition=0, first=offset, next=offset + 1, last=last),),
                objects=(item,),
                committed_at=datetime.now(UTC),
            )
            key = Chain(store, pipeline, topic, "").key(manifest.number)
            store.put_new(key, manifest.encode(), {"attempt": manifest.attempt})

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

    def _record(self, offset: int) -> bytes:
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


def parts(first: int, end: int) -> Iterator[range]:
    """Return the offsets in parts, about four for each writer."""
    size = max(1, (end - first) // (4 * WRITERS))
    return (range(at, min(at + size, end)) for at in range(first, end, size))


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
