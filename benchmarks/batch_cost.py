"""What a batch costs after 10, 1,000 and 10,000 manifests: landing it, the light checks, applying it.

Real engines on a stack of its own (S3, Kafka, Spark). The history is written by a fixture: a record, an object and a
manifest for each number, applied in one commit; then batches of one record are landed and applied as the graph does it.
Requests are counted at a proxy in front of the store: those of Python, of its workers and of Spark's S3A alike. The
check of the whole chain is measured beside it: each run paid for it before (docs/decisions/0028-cost-of-a-batch.md).

    python -m benchmarks.batch_cost --manifests 10 1000 10000
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from cdc_lake.contract.objects import json_lines
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.source.topic_records import fingerprint
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import chain_verification
from cdc_lake.pipeline.naming import Flow, TableFlow, location
from cdc_lake.pipeline.spec import PipelineSpec
from cdc_lake_tests.integration.jobs.engines import BUCKET, make_bucket, running_spark
from cdc_lake_tests.local_stack import running_stack, scratch_home
from cdc_lake_tests.s3_fault_proxy import Wire, faulty_wire
from infra.local.stack.attach import load_endpoints
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

log = logging.getLogger(__name__)
GOAL = 1.2
WARM_UP, KEYS, WRITERS = 12, 50, 8
COLUMNS = (Column(name="id", type="integer", nullable=False), Column(name="qty", type="bigint"))
SPEC = {
    "name": "bench",
    "source": {"kind": "log", "database": "devdb", "schema": "public", "tables": ["orders"], "publication": "bench"},
    "stream": {"prefix": "bench"},
    "tables": [{"name": "orders", "key": ["id"]}],
    "catalog": "bench",
}


@dataclass(frozen=True)
class Cost:
    """Seconds, and requests to the store."""

    seconds: float
    requests: int


@dataclass
class Bench:
    """One table of one pipeline on running engines; `direct` is the store without the proxy, for the fixture."""

    table: TableFlow
    kafka: Kafka
    spark: SparkSession
    store: S3Location
    direct: S3Location
    wire: Wire

    def __post_init__(self) -> None:
        self.kafka.ensure_topic(self.table.topic, 1)
        captured_schema.capture(
            self.direct.store(), self.table.pipeline.name, self.table.source_table, COLUMNS, ("id",)
        )
        self.producer = Producer({"bootstrap.servers": self.kafka.bootstrap})

    @property
    def chain(self) -> Chain:
        """The topic's chain, counted requests included."""
        return Chain(self.store.store(), self.table.pipeline.name, self.table.topic)

    def send(self, first: int, end: int) -> None:
        """Produce the records of these offsets."""
        for offset in range(first, end):
            self.producer.produce(self.table.topic, value=record(offset), partition=0)
            self.producer.poll(0)
        if self.producer.flush(60):
            raise RuntimeError(f"Cannot produce to {self.table.topic}: Kafka did not answer within 60 s.")

    def history(self, length: int) -> None:
        """Extend the chain to so many manifests of one record each; count, verify and apply them, past the proxy."""
        chain = Chain(self.direct.store(), self.table.pipeline.name, self.table.topic)
        first = chain.length()
        self.send(first, length)
        found = self.kafka.topic(self.table.topic)
        topic_id = "" if found is None else found.topic_id
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda part: self._write(part, topic_id), parts(first, length)))
        head = chain.head()
        if head is None or head.number != length or chain.records(head) != length:
            raise RuntimeError(f"Cannot write a history of {length} manifests: the chain ends at {head}.")
        require_clean(chain_verification.verify_new(chain))
        upsert.run(self.spark, self.table.upsert_spec(self.direct, owner="bench"))

    def _write(self, offsets: range, topic_id: str) -> None:
        store = self.direct.store()
        pipeline, topic = self.table.pipeline.name, self.table.topic
        for offset in offsets:
            body = json_lines.join_lines([record(offset)])
            key = ObjectName(pipeline, topic, 0, offset, offset, json_lines.EXTENSION).key
            last = LastRecord(offset=offset, fingerprint=fingerprint(record(offset)))
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
        """What the sensor and the stage raw do."""
        found = table_progress.landing(self.table, self.kafka, self.store)
        if found.behind <= 0:
            raise RuntimeError(f"Cannot measure a batch: topic {self.table.topic} has nothing new.")
        found = table_progress.landing(self.table, self.kafka, self.store)
        land.run(self.spark, found.spec)
        head = found.chain.head()
        if head is not None:
            found.chain.records(head)
        table_progress.raw_watermark(self.store.store(), self.table, found.state)

    def check(self) -> None:
        """What the light check of the manifests does."""
        require_clean(chain_verification.verify_new(self.chain))

    def whole(self) -> None:
        """What the check of the whole chain does."""
        require_clean(chain_verification.verify_whole(self.chain))

    def apply(self) -> None:
        """What the sensor and the stage lake do to the table's files."""
        spec = self.table.upsert_spec(self.store, owner="bench")
        if not upsert.new_manifests(self.store.store(), spec):
            raise RuntimeError(f"Cannot measure a batch: lake table {self.table.name} has applied everything.")
        upsert.run(self.spark, spec)

    def cost(self, work: Callable[[], None]) -> Cost:
        """Do it; what it cost."""
        before, started = sum(self.wire.answered.values()), time.monotonic()
        work()
        return Cost(time.monotonic() - started, sum(self.wire.answered.values()) - before)

    def batch(self) -> dict[str, Cost]:
        """Land, check and apply one record; the cost of each step and of all."""
        offset = self.kafka.end_offsets(self.table.topic)[0]
        self.send(offset, offset + 1)
        found = {"land": self.cost(self.land), "light check": self.cost(self.check), "apply": self.cost(self.apply)}
        whole = Cost(sum(c.seconds for c in found.values()), sum(c.requests for c in found.values()))
        return {**found, "batch": whole}


def record(offset: int) -> bytes:
    """The record of an offset: few keys, so that the table stays small whatever the history."""
    marks = {"__op": "u", "__db": "devdb", "__schema": "public", "__table": "orders", "__lsn": offset, "__txId": offset}
    return json.dumps(
        {
            "id": offset % KEYS,
            "qty": offset,
            **marks,
            "__snapshot": "false",
            "__source_ts_ms": offset,
            "__deleted": "false",
        }
    ).encode()


def parts(first: int, end: int) -> Iterator[range]:
    """The offsets, a part for each writer and a few more."""
    size = max(1, (end - first) // (4 * WRITERS))
    return (range(at, min(at + size, end)) for at in range(first, end, size))


def require_clean(found: chain_verification.Verified) -> None:
    """Raise where the fixture's chain is damaged."""
    if found.damaged:
        raise RuntimeError(f"Cannot measure: {len(found.damaged)} objects are missing or changed: {found.damaged[:3]}.")


@contextmanager
def running_bench() -> Iterator[Bench]:
    """The engines, and the pipeline."""
    with (
        scratch_home() as home,
        tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as scratch,
        running_stack(home, ("s3", "kafka")),
    ):
        at = load_endpoints(home)
        with faulty_wire(at.s3_endpoint) as wire:
            secret = at.s3_secret_key.get_secret_value()
            behind, direct = (
                ObjectStore(
                    bucket=BUCKET,
                    region_name=at.region,
                    endpoint_url=to,
                    aws_access_key_id=at.s3_access_key,
                    aws_secret_access_key=secret,
                )
                for to in (wire.endpoint, at.s3_endpoint)
            )
            make_bucket(location(direct))
            table = Flow(PipelineSpec.model_validate(SPEC), Path(scratch)).tables[0]
            with running_spark(at, behind, Path(scratch)) as spark:
                kafka = Kafka(bootstrap=at.kafka_bootstrap)
                yield Bench(table, kafka, spark, location(behind), location(direct), wire)


def middle(costs: Sequence[dict[str, Cost]], step: str) -> Cost:
    """The median of a step's seconds and of its requests."""
    found = [each[step] for each in costs]
    return Cost(statistics.median(c.seconds for c in found), int(statistics.median(c.requests for c in found)))


def report(bench: Bench, sizes: Sequence[int], rounds: int) -> int:
    """Measure and print; 0 where the last batch costs at most 1.2 times the first, in seconds and in requests."""
    measured: dict[int, dict[str, Cost]] = {}
    for size in sizes:
        took = bench.cost(lambda: bench.history(size))  # noqa: B023 - called in this round
        log.info("a history of %d manifests is written and applied: %.0f s", size, took.seconds)
        for _ in range(WARM_UP if not measured else 2):
            bench.batch()
        costs = [bench.batch() for _ in range(rounds)]
        measured[size] = {step: middle(costs, step) for step in costs[0]} | {"whole chain": bench.cost(bench.whole)}
    first = measured[sizes[0]]
    table = Table("manifests", "step", "seconds", "requests", "seconds, ratio", "requests, ratio")
    for size, steps in measured.items():
        for step, cost in steps.items():
            ratios = (cost.seconds / first[step].seconds, cost.requests / first[step].requests)
            table.add_row(
                f"{size:,}", step, f"{cost.seconds:.2f}", f"{cost.requests:,}", *(f"{r:.2f}x" for r in ratios)
            )
    console = Console(width=110)
    console.print(table)
    last, begun = measured[sizes[-1]]["batch"], first["batch"]
    kept = last.seconds <= GOAL * begun.seconds and last.requests <= GOAL * begun.requests
    console.print(f"median of {rounds} batches; the goal is {GOAL}x: {'kept' if kept else '[red]missed[/red]'}")
    return 0 if kept else 1


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    log.setLevel(logging.INFO)
    with running_bench() as bench:
        return report(bench, sorted(options.manifests), options.rounds)


if __name__ == "__main__":
    sys.exit(main())
