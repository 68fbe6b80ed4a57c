"""A made-up shop's pipeline, and its changes flowing through fakes: source, topic, raw objects, lake.

Here: moving events on as the real parts do, in plain Python. Not here: the fakes (fakes.py), the object store
(memory_store.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from cdc_lake.contract import json_lines, schema, timeline
from cdc_lake.contract.chain import Chain
from cdc_lake.contract.manifest import LandedObject, Manifest
from cdc_lake.contract.names import ObjectName
from cdc_lake.contract.store import S3Location
from cdc_lake.jobs import land as landing
from cdc_lake.jobs import upsert
from cdc_lake.pipeline import stream
from cdc_lake.pipeline.flow import Flow, TableFlow
from cdc_lake.pipeline.load import load
from cdc_lake_tests.fake_kafka import FakeKafka
from cdc_lake_tests.fake_steps import Steps
from cdc_lake_tests.fakes import FakeAthena, FakeConnect, FakeGlue, FakePostgres
from cdc_lake_tests.memory_store import MemoryStore
from resources.deployment import Deployment
from resources.object_store import ObjectStore
from resources.postgres_catalog import ColumnInfo

YAML = """\
type: cdc_lake.CdcPipeline

attributes:
  name: shop
  owners: ["team:shop", "me@example.com"]
  source:
    kind: log
    database: shopdb
    schema: sales
    tables: [orders, customers]
    publication: shop_publication
    checks: [orders_have_customers.sql]
  stream: { prefix: shop }
  landing: { flush_seconds: 30, flush_records: 5 }
  tables:
    - name: orders
      key: [order_id]
    - name: customers
      key: [customer_id]
      partition_by: [country]
  catalog: shop_lake
  datasets: [totals.sql, countries.sql]
  freshness: { topic: 1m, raw: 2m, lake: 10m }
  replay_window: 12h
  retained_wal_limit_mb: 1
"""
SQL = {
    "orders_have_customers.sql": """
SELECT o.order_id FROM sales.orders o LEFT JOIN sales.customers c USING (customer_id) WHERE c.customer_id IS NULL;
""",
    "totals.sql": "SELECT customer_id, CAST(total AS decimal(6, 2)) AS total FROM orders_current\n",
    "totals.source.sql": "SELECT customer_id, total FROM sales.orders",
    "countries.sql": "SELECT DISTINCT country FROM customers_current",
}
COLUMNS = {
    "orders": {"order_id": "integer", "customer_id": "text", "total": "numeric(6,2)"},
    "customers": {"customer_id": "text", "country": "text"},
}
HEARTBEATS = "shop.sales.cdc_heartbeat"
FIELDS = ("__op", "__lsn", "__snapshot", "__source_ts_ms", "__deleted")


def write_shop(defs: Path, yaml: str = YAML) -> Path:
    """Write the shop's pipeline below a folder of definitions; its folder."""
    folder = defs / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "defs.yaml").write_text(yaml)
    for name, text in SQL.items():
        (folder / name).write_text(text)
    return folder


class FakeSpark:
    """Runs the jobs in plain Python, on a world."""

    def __init__(self, world: World) -> None:
        self._jobs: dict[Any, Callable[[Any], Any]] = {landing.run: world.land_by, upsert.run: world.apply_by}

    def run(self, job: Callable[..., Any], spec: Any) -> Any:  # noqa: ANN401 - as the resource's
        """See LocalSpark."""
        return self._jobs[job](spec)


@dataclass
class World:
    """One pipeline with everything it touches; `now` is the source's clock, in seconds since 1970."""

    flow: Flow
    pages: Path
    now: float
    steps: Steps = field(default_factory=Steps)
    bucket: MemoryStore = field(default_factory=MemoryStore)
    store: ObjectStore = field(default_factory=lambda: ObjectStore(bucket="shop"))
    streaming: bool = True
    """Whether the connector brings what happens at the source."""

    def __post_init__(self) -> None:
        self.kafka = FakeKafka().noting(self.steps)
        self.postgres = FakePostgres().noting(self.steps)
        self.connect = FakeConnect().noting(self.steps)
        self.glue = FakeGlue().noting(self.steps)
        self.athena = FakeAthena().with_catalog(self.glue)
        self.athena.types.update(order_id="integer", total="decimal(6,2)")
        self.spark = FakeSpark(self)
        self.deployment = Deployment(
            profile="local",
            source_host="nowhere",
            password_reference="${file:/secrets:pw}",
            pages=str(self.pages),
            snapshot_seconds=0.3,
        )
        self.postgres.listeners.append(self._beaten)
        self._rows: dict[str, dict[str, dict[str, object]]] = {name: {} for name in COLUMNS}
        for name, columns in COLUMNS.items():
            infos = [
                ColumnInfo(column, kind, kind.partition("(")[0], False, place, None, None, None, "base", False)
                for place, (column, kind) in enumerate(columns.items(), 1)
            ]
            self.postgres.has("sales", name, infos, (next(iter(columns)),))
            self._write_source(name)

    @property
    def orders(self) -> TableFlow:
        """The first table."""
        return self.flow.tables[0]

    @property
    def customers(self) -> TableFlow:
        """The second table."""
        return self.flow.tables[1]

    def start(self) -> World:
        """Everything is deployed and runs; schemas are captured."""
        for topic in (*(table.topic for table in self.flow.tables), HEARTBEATS):
            self.kafka.make(topic)
        self.connect.run(self.flow.connector)
        self.postgres.put_slot(self.flow.slot)
        for table in self.flow.tables:
            columns = [schema.Column(name=name, type=kind) for name, kind in COLUMNS[table.name].items()]
            schema.capture(self.bucket, "shop", table.source_table, columns, table.spec.key)
            self.apply(table)
        return self

    def order(self, order_id: int, customer_id: str = "ANNE", total: str = "10.00", snapshot: str = "false") -> None:
        """Insert or update an order."""
        self._change("orders", {"order_id": order_id, "customer_id": customer_id, "total": total}, snapshot)

    def customer(self, customer_id: str, country: str = "PL") -> None:
        """Insert or update a customer."""
        self._change("customers", {"customer_id": customer_id, "country": country}, "false")

    def delete_order(self, order_id: int) -> None:
        """Delete an order."""
        row = self._rows["orders"].pop(str(order_id))
        self._write_source("orders")
        self._event("orders", {**row, "__op": "d", "__deleted": "true"}, "false")

    def beat(self, snapshot: str = "false") -> None:
        """Debezium's own heartbeat."""
        self._beaten(self.postgres.current_lsn() + 1, snapshot)

    def land(self, table: TableFlow) -> landing.LandReport:
        """What raw does."""
        state = stream.topic_state(self.kafka, table)
        return self.land_by(stream.land_spec(table, state, S3Location("shop"), "nowhere"))

    def land_by(self, spec: landing.LandSpec) -> landing.LandReport:
        """The land job without Spark: an object a span."""
        chain = Chain(self.bucket, spec.pipeline, spec.topic)
        head = chain.head()
        spans = landing.pending(head, spec)
        objects = []
        for span in spans:
            messages = [m for m in self.kafka.peek(spec.topic, span.partition, span.first) if m.offset < span.next]
            if messages:
                objects.append(self._put(spec, [(m.partition, m.offset, m.value or b"") for m in messages]))
        manifest = Manifest(
            number=1 if head is None else head.number + 1,
            attempt=spec.attempt,
            pipeline=spec.pipeline,
            topic=spec.topic,
            topic_id=spec.topic_id,
            spans=spans,
            objects=tuple(objects),
            watermark=spec.watermark,
            committed_at=datetime.now(UTC),
        )
        chain.append(manifest)
        return landing.LandReport(manifest.number, manifest.records, len(objects), manifest.size, 0, 0.1)

    def apply(self, table: TableFlow) -> None:
        """What lake does to the table's files; the rows appear in Athena's tables and view."""
        spec = table.upsert_spec(S3Location("shop"), "test")
        if upsert.new_manifests(self.bucket, spec):
            self.apply_by(spec)
        else:
            self._write_lake(table.name)

    def apply_by(self, spec: upsert.UpsertSpec) -> upsert.UpsertReport:
        """The upsert job without Spark."""
        new = upsert.new_manifests(self.bucket, spec)
        before = timeline.last_commit(self.bucket, spec.prefix)
        instant = f"2026{1 if before is None else int(before.instant) - 20260000 + 1:04d}"
        checkpoint = timeline.Checkpoint(
            topic=spec.topic,
            topic_id=new[-1].topic_id,
            manifest=new[-1].number,
            schema_version=1,
            watermark=new[-1].watermark,
        )
        body = {"partitionToWriteStats": {}, "extraMetadata": {timeline.CHECKPOINT_KEY: checkpoint.model_dump_json()}}
        self.bucket.write(f"{spec.prefix}.hoodie/{instant}.commit", json.dumps(body).encode())
        self.bucket.write(f"{spec.prefix}newest.parquet", b"x" * 100)
        self._write_lake(spec.table)
        events = sum(manifest.records for manifest in new)
        return upsert.UpsertReport(instant, len(new), events, events, events, 0, 0, 100, 1, 0.1)

    def raw_events(self, table: str) -> list[dict[str, Any]]:
        """Everything that is landed of a table."""
        flow = next(each for each in self.flow.tables if each.name == table)
        items = (item for manifest in stream.manifests(self.bucket, flow) for item in manifest.objects)
        return [json.loads(value) for item in items for _, value in json_lines.records(self.bucket, item)]

    def _change(self, table: str, row: Mapping[str, object], snapshot: str) -> None:
        key = str(row[next(iter(COLUMNS[table]))])
        operation = "r" if snapshot != "false" else "u" if key in self._rows[table] else "c"
        self._rows[table][key] = dict(row)
        self._write_source(table)
        self._event(table, {**row, "__op": operation, "__deleted": "false"}, snapshot)

    def _event(self, table: str, event: Mapping[str, object], snapshot: str) -> None:
        self.postgres.beat_silently()
        marks = {"__lsn": self.postgres.current_lsn(), "__snapshot": snapshot, "__source_ts_ms": int(self.now * 1000)}
        if self.streaming:
            self.kafka.send(f"shop.sales.{table}", json.dumps({**event, **marks}).encode())

    def _beaten(self, lsn: int, snapshot: str = "false") -> None:
        if self.streaming and self.kafka.topic(HEARTBEATS) is not None:
            row = {"id": 1, "__lsn": lsn, "__snapshot": snapshot, "__source_ts_ms": int(self.now * 1000)}
            self.kafka.send(HEARTBEATS, json.dumps(row).encode())

    def _put(self, spec: landing.LandSpec, records: list[tuple[int, int, bytes]]) -> LandedObject:
        partition, first, last = records[0][0], records[0][1], records[-1][1]
        body = json_lines.frame([value for _, _, value in records])
        key = ObjectName(spec.pipeline, spec.topic, partition, first, last, json_lines.EXTENSION).key
        runs = [list(group) for _, group in groupby(enumerate(records), lambda one: one[1][1] - one[0])]
        return LandedObject(
            key=key,
            partition=partition,
            first=first,
            last=last,
            records=len(records),
            bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            etag=self.bucket.put_new(key, body),
            runs=tuple((run[0][1][1], len(run)) for run in runs),
        )

    def _write_source(self, table: str) -> None:
        rows = [list(row.values()) for row in self._rows[table].values()]
        self.postgres.sql.make("sales", table, list(COLUMNS[table]), rows)

    def _write_lake(self, table: str) -> None:
        folded: dict[object, dict[str, Any]] = {}
        for event in sorted(self.raw_events(table), key=lambda one: (one["__snapshot"] == "false", one["__lsn"])):
            folded[event[next(iter(COLUMNS[table]))]] = event
        columns = list(COLUMNS[table])
        rows = [
            [*(row[column] for column in columns), row["__deleted"] == "true", "newest.parquet"]
            for row in folded.values()
        ]
        self.athena.sql.make("shop_lake", table, [*columns, "__deleted", "_hoodie_file_name"], rows)
        names = ", ".join(columns)
        self.athena.sql.run(
            f'CREATE OR REPLACE VIEW "shop_lake"."{table}_current" AS '
            f'SELECT {names} FROM "shop_lake"."{table}" WHERE NOT "__deleted"'
        )


def world(folder: Path, now: float) -> World:
    """A world whose files lie below a folder; nothing is deployed yet."""
    write_shop(folder / "defs")
    return World(load("shop", folder / "defs"), folder / "pages", now)
