"""The pipeline of a fictitious shop whose source, topics, raw objects and lake are fakes in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import timeline
from cdc_lake.jobs import verify
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.publishing.html_pages import Pages
from cdc_lake.pipeline.source_health import schema_capture
from cdc_lake_tests.fakes import jobs
from cdc_lake_tests.fakes.aws.athena import FakeAthena
from cdc_lake_tests.fakes.aws.glue import FakeGlue
from cdc_lake_tests.fakes.aws.metrics import FakeMetrics
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.fakes.shop.shop_pipeline import COLUMNS, HEARTBEATS, write_shop
from cdc_lake_tests.fakes.source.connect import FakeConnect
from cdc_lake_tests.fakes.source.kafka import FakeKafka
from cdc_lake_tests.fakes.source.postgres import FakePostgres
from cdc_lake_tests.fakes.steps import Steps
from cdc_lake_tests.helpers.memory_store import MemoryStore
from resources.deployment import Deployment
from resources.object_store import ObjectStore
from resources.postgres.exported_snapshot import Snapshot
from resources.postgres.table_columns import ColumnInfo
from resources.postgres.table_files import TableFiles


@dataclass
class Shop:
    """One pipeline with its fake systems; `now` is the source's clock in seconds since 1970."""

    pipeline: Pipeline
    pages: Path
    now: float
    steps: Steps = field(default_factory=Steps)
    bucket: MemoryStore = field(default_factory=MemoryStore)
    store: ObjectStore = field(default_factory=lambda: ObjectStore(bucket="shop"))
    beats: int = 0
    """The counter in the heartbeat rows."""
    streaming: bool = True
    """Whether the connector sends the source's changes to Kafka."""
    snapshot_statuses: list[str] = field(default_factory=list)
    """The final statuses of the next incremental snapshots; "" for one that does not end. Later ones succeed."""

    def __post_init__(self) -> None:
        self.kafka = FakeKafka().noting(self.steps)
        self.postgres = FakePostgres().noting(self.steps)
        self.connect = FakeConnect().noting(self.steps)
        self.glue = FakeGlue().noting(self.steps)
        self.athena = FakeAthena().with_catalog(self.glue)
        self.metrics = FakeMetrics()
        self.athena.types.update(order_id="integer", total="decimal(6,2)")
        self.swept: list[sweep.SweepSpec] = []
        self.spark = FakeSpark(
            {
                landing.run: self.land_by,
                upsert.run: self.apply_by,
                verify.run: self.verify_by,
                sweep.run: self.sweep_by,
            }
        )
        self.deployment = Deployment(
            profile="local",
            source_host="nowhere",
            password_reference="${file:/secrets:pw}",
            pages=str(self.pages),
            snapshot_seconds=0.3,
            stream_seconds=0.3,
        )
        self.postgres.listeners.append(self._send_heartbeat)
        self.postgres.signal_listeners.append(self._run_incremental_snapshot)
        self.connect.listeners.append(self._create_slot)
        self._rows: dict[str, dict[str, dict[str, object]]] = {name: {} for name in COLUMNS}
        for name, columns in COLUMNS.items():
            infos = [
                ColumnInfo(column, kind, kind.partition("(")[0], False, place, None, "base", False)
                for place, (column, kind) in enumerate(columns.items(), 1)
            ]
            self.postgres.has("sales", name, infos, (next(iter(columns)),))
            self._write_source(name)

    @property
    def resolved(self) -> dict[str, Any]:
        """Return the resources by name for use outside of a run, as the profile does."""
        return {
            "postgres": self.postgres,
            "kafka": self.kafka,
            "connect": self.connect,
            "store": self.store,
            "glue": self.glue,
            "athena": self.athena,
            "deployment": self.deployment,
            "dashboards": Pages(deployment=self.deployment),
            "metrics": self.metrics,
        }

    @property
    def resources(self) -> dict[str, Any]:
        """Return the resources by the names that assets require."""
        return {**self.resolved, "spark": self.spark}

    @property
    def source(self) -> SourcePostgres:
        """Return the fake Postgres as the source of this pipeline."""
        return SourcePostgres(self.postgres)

    @property
    def orders(self) -> PipelineTable:
        return self.pipeline.tables[0]

    @property
    def customers(self) -> PipelineTable:
        return self.pipeline.tables[1]

    def start(self) -> Shop:
        """Deploy topics, connector and slot, and capture the schemas. Return self."""
        for topic in (*(table.topic for table in self.pipeline.tables), HEARTBEATS):
            self.kafka.make(topic)
        self.connect.put(self.pipeline.connector, {"exactly.once.support": "required"})
        self.postgres.put_slot(self.pipeline.slot)
        for table in self.pipeline.tables:
            schema_capture.capture(table, self.source, self.bucket)
            self.apply(table)
        return self

    def order(self, order_id: int, customer_id: str = "ANNE", total: str = "10.00", snapshot: str = "false") -> None:
        """Insert or update an order."""
        self._change("orders", {"order_id": order_id, "customer_id": customer_id, "total": total}, snapshot)

    def customer(self, customer_id: str, country: str = "PL") -> None:
        """Insert or update a customer."""
        self._change("customers", {"customer_id": customer_id, "country": country}, "false")

    def delete_order(self, order_id: int) -> None:
        row = self._rows["orders"].pop(str(order_id))
        self._write_source("orders")
        self._event("orders", {**row, "__op": "d", "__deleted": "true"}, "false")

    def write_heartbeat(self, snapshot: str = "false") -> None:
        """Send a heartbeat record to Kafka, as Debezium does."""
        self._send_heartbeat(self.postgres.current_lsn() + 1, snapshot)

    def land(self, table: PipelineTable) -> landing.LandReport:
        """Do the work of the raw asset."""
        return self.land_by(table_progress.landing_input(table, self.kafka, S3Location("shop")).spec)

    def land_by(self, spec: LandSpec) -> landing.LandReport:
        """Run the land job without Spark."""
        return jobs.land(self.kafka, self.bucket, spec)

    def apply(self, table: PipelineTable) -> None:
        """Do the work of the lake asset without Spark; Athena's table and view then have the rows."""
        spec = table.upsert_spec(S3Location("shop"), "test")
        if upsert.new_manifests(self.bucket, spec, timeline.last_commit(self.bucket, spec.prefix)):
            self.apply_by(spec)
        else:
            self._write_lake(table.name)

    def apply_by(self, spec: UpsertSpec) -> upsert.UpsertReport:
        """Run the upsert job without Spark."""
        report = jobs.apply(self.bucket, spec)
        self._write_lake(spec.table)
        return report

    def verify_by(self, spec: verify.VerifySpec) -> verify.VerifyReport:
        """Run the verify job without Spark. A row that only the source or only the lake has counts as different."""
        table = spec.source.table
        columns = ", ".join(f'"{column.name}"' for column in spec.versions[-1].columns)
        _, source_rows = self.postgres.sql.run(f'SELECT {columns} FROM "sales"."{table}"')
        _, lake_rows = self.athena.sql.run(f'SELECT {columns} FROM "shop_lake"."{table}_current"')
        different = {str(tuple(row)) for row in source_rows} ^ {str(tuple(row)) for row in lake_rows}
        return verify.VerifyReport(
            len(source_rows), len(lake_rows), len(source_rows), 0, 0, 0, 0, len(different), 0, (), {"match": 0.1}
        )

    def sweep_by(self, spec: sweep.SweepSpec) -> sweep.SweepReport:
        """Run the sweep job without Spark: it always reports three rows."""
        self.swept.append(spec)
        return sweep.SweepReport(timeline.last_commit(self.bucket, spec.table.prefix), 3, 0.1)

    @contextmanager
    def point(self, _postgres: object, _slot: str) -> Iterator[SimpleNamespace]:
        """Yield a consistent point, as consistent_point() does."""
        files = TableFiles((1,), 1)
        snapshot = Snapshot(700, 710, frozenset())
        yield SimpleNamespace(
            snapshot_id="1-1", lsn=self.postgres.current_lsn(), horizon=0, snapshot=snapshot, files=lambda *_: files
        )

    def carry(self) -> None:
        """Land and apply all pending changes of the orders."""
        self.land(self.orders)
        self.apply(self.orders)

    def raw_events(self, table: str) -> list[dict[str, Any]]:
        """Return all landed events of a table."""
        pipeline = next(each for each in self.pipeline.tables if each.name == table)
        items = (item for manifest in table_progress.manifests(self.bucket, pipeline) for item in manifest.objects)
        return [json.loads(value) for item in items for _, value in raw_objects.records(self.bucket, item)]

    def _change(self, table: str, row: Mapping[str, object], snapshot: str) -> None:
        key = str(row[next(iter(COLUMNS[table]))])
        operation = "r" if snapshot != "false" else "u" if key in self._rows[table] else "c"
        self._rows[table][key] = dict(row)
        self._write_source(table)
        self._event(table, {**row, "__op": operation, "__deleted": "false"}, snapshot)

    def _event(self, table: str, event: Mapping[str, object], snapshot: str) -> None:
        self.postgres.advance_wal()
        lsn = None if snapshot == "incremental" else self.postgres.current_lsn()
        marks = {"__lsn": lsn, "__snapshot": snapshot, "__source_ts_ms": int(self.now * 1000)}
        if self.streaming:
            self.kafka.send(f"shop.sales.{table}", json.dumps({**event, **marks}).encode())

    def _create_slot(self, _name: str) -> None:
        """Create the slot if it is missing, as Debezium does."""
        if self.postgres.slot(self.pipeline.slot) is None:
            self.postgres.put_slot(self.pipeline.slot)

    def _run_incremental_snapshot(self, table: str) -> None:
        """Read a table by an incremental snapshot, as Debezium does."""
        status = self.snapshot_statuses.pop(0) if self.snapshot_statuses else "SUCCEEDED"
        if status == "SUCCEEDED":
            for row in self._rows[table].values():
                self._event(table, {**row, "__op": "r", "__deleted": "false"}, "incremental")
        if status:
            details = {"scanned_collection": f"sales.{table}", "status": status}
            found = {"aggregate_type": "Incremental Snapshot", "type": "TABLE_SCAN_COMPLETED"}
            self.kafka.send(
                self.pipeline.notification_topic, json.dumps({**found, "additional_data": details}).encode()
            )

    def _send_heartbeat(self, lsn: int, snapshot: str = "false") -> None:
        """Send a heartbeat record if the connector is deployed and its topic exists."""
        self.beats += 1
        deployed = self.connect.status(self.pipeline.connector) is not None
        if self.streaming and deployed and self.kafka.topic(HEARTBEATS) is not None:
            row = {"id": 1, "beats": self.beats, "__lsn": lsn, "__snapshot": snapshot}
            row["__source_ts_ms"] = int(self.now * 1000)
            self.kafka.send(HEARTBEATS, json.dumps(row).encode())

    def _write_source(self, table: str) -> None:
        rows = [list(row.values()) for row in self._rows[table].values()]
        self.postgres.sql.make("sales", table, list(COLUMNS[table]), rows)

    def _write_lake(self, table: str) -> None:
        newest_by_key: dict[object, dict[str, Any]] = {}
        for event in sorted(self.raw_events(table), key=lambda one: (one["__snapshot"] == "false", one["__lsn"] or 0)):
            newest_by_key[event[next(iter(COLUMNS[table]))]] = event
        columns = list(COLUMNS[table])
        rows = [
            [*(row[column] for column in columns), row["__deleted"] == "true", "newest.parquet"]
            for row in newest_by_key.values()
        ]
        self.athena.sql.make("shop_lake", table, [*columns, "__deleted", "_hoodie_file_name"], rows)
        names = ", ".join(columns)
        self.athena.sql.run(
            f'CREATE OR REPLACE VIEW "shop_lake"."{table}_current" AS '
            f'SELECT {names} FROM "shop_lake"."{table}" WHERE NOT "__deleted"'
        )


def new_shop(folder: Path, now: float) -> Shop:
    """Return a pipeline with its files below a folder; nothing is deployed yet."""
    write_shop(folder / "defs")
    return Shop(load("shop", folder / "defs"), folder / "pages", now)
