"""A lake table of one test: events landed as by the landing job, upserted, and read by two engines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hudi import HudiTableBuilder

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, Manifest, Span
from cdc_lake.contract.objects.store import S3Store
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.table import history, instants, timeline
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert import UpsertReport
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.hudi.table_options import TableType
from cdc_lake.jobs.landing.raw_writer import RawWriter
from cdc_lake_tests.integration.jobs.engines import Engines

TOPIC = "shop.public.orders"
SOURCE = "public.orders"
Event = Mapping[str, object]


def record_bytes(event: Event | bytes) -> bytes:
    """Return a record's value as Debezium writes it, without blanks; bytes are returned unchanged."""
    if isinstance(event, bytes):
        return event
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass
class LakeTable:
    """A pipeline with one topic of one partition and one table; `name` is unique in the bucket."""

    engines: Engines
    name: str
    columns: Sequence[Column]
    key: Sequence[str]
    table_type: TableType = "cow"
    topic_id: str = "AAAAAAAAAAAAAAAAAAAAAQ"
    next_offset: int = 0
    records_per_object: int = 200
    objects: list[LandedObject] = field(default_factory=list)

    def __post_init__(self) -> None:
        seen = TableSchema(version=0, table=SOURCE, columns=tuple(self.columns), key=tuple(self.key))
        captured_schema.record(self.store, self.name, seen)

    def lake_columns(self) -> list[tuple[str, str]]:
        """Return the names and types of the captured schema's lake columns."""
        return captured_schema.latest(self.store, self.name, SOURCE).lake_columns()

    @property
    def store(self) -> S3Store:
        """The bucket."""
        return self.engines.location.store()

    @property
    def chain(self) -> Chain:
        """The manifests of the table's topic."""
        return Chain(self.store, self.name, TOPIC)

    @property
    def spec(self) -> UpsertSpec:
        """The upsert's specification; it does not wait for a lease that another writer holds."""
        return UpsertSpec(
            location=self.engines.location,
            pipeline=self.name,
            topic=TOPIC,
            source_table=SOURCE,
            table="orders",
            key=self.key,
            table_type=self.table_type,
            lease_wait_seconds=0,
        )

    def deliver(self, events: Sequence[Event | bytes], epoch: int = 0, watermark: Watermark | None = None) -> Manifest:
        """Land events (bytes unchanged) as one manifest, with gaps in the offsets like those of transaction markers."""
        values = [record_bytes(event) for event in events]
        first = self.next_offset
        offsets = [first + index + index // 10 for index in range(len(values))]
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array([0] * len(values), pa.int32()),
                pa.array(offsets, pa.int64()),
                pa.array(values, pa.binary()),
                pa.nulls(len(values)),
                pa.nulls(len(values)),
            ],
            names=["partition", "offset", "value", "key", "headers"],
        )
        writer = RawWriter(
            self.engines.location, self.name, TOPIC, f"attempt at {first}", self.records_per_object, 1 << 26
        )
        written = [row for rows in writer([batch]) for row in rows.to_pylist()]
        objects = tuple(LandedObject.model_validate_json(row["json"]) for row in written if row["kind"] == "object")
        self.next_offset = (offsets[-1] if offsets else first) + 2
        manifest = Manifest(
            number=self.chain.length() + 1,
            attempt=f"attempt at {first}",
            pipeline=self.name,
            topic=TOPIC,
            topic_id=self.topic_id,
            epoch=epoch,
            spans=(Span(partition=0, first=first, next=self.next_offset),),
            objects=objects,
            watermark=watermark,
            committed_at=datetime.now(UTC),
        )
        self.chain.append(manifest)
        self.objects.extend(objects)
        return manifest

    def upsert(self, spec: UpsertSpec | None = None) -> UpsertReport:
        """Apply the manifests that are not applied yet."""
        return upsert.run(self.engines.spark, spec or self.spec)

    def checkpoint(self) -> timeline.Checkpoint:
        """Return the checkpoint of the newest commit, which must exist."""
        commit = timeline.last_commit(self.store, self.spec.prefix)
        assert commit is not None
        assert commit.checkpoint is not None
        return commit.checkpoint

    def make_older(self, by: timedelta) -> None:
        """Rename the table's commits as if all had been written that much earlier.

        An instant has the same length everywhere: in names, in the timeline's JSON and Avro, and in log files.
        """
        instant = re.compile(rb"20\d{15}")
        keys = [item.key for item in self.store.scan(self.spec.prefix) if instant.search(item.key.encode())]
        known = {found for key in keys for found in instant.findall(key.encode())}

        def earlier(found: re.Match[bytes]) -> bytes:
            if found[0] not in known:
                return found[0]
            return history.instant((instants.time_of(found[0].decode()) - by).isoformat()).encode()

        for key in keys:
            stored = self.store.get(key)
            assert stored is not None
            body = stored.body if key.endswith(".parquet") else instant.sub(earlier, stored.body)
            self.store.delete([key])
            self.store.put_new(instant.sub(earlier, key.encode()).decode(), body)

    def by_hudi_rs(self) -> list[dict[str, object]]:
        """Return the table's rows as hudi-rs reads them."""
        location = self.engines.location
        table = (
            HudiTableBuilder.from_base_uri(self.spec.uri().replace("s3a://", "s3://"))
            .with_options(
                {
                    "AWS_ENDPOINT_URL": location.endpoint_url or "",
                    "AWS_ALLOW_HTTP": "true",
                    "AWS_REGION": location.region or "",
                    "AWS_ACCESS_KEY_ID": location.access_key or "",
                    "AWS_SECRET_ACCESS_KEY": location.secret_key or "",
                }
            )
            .build()
        )
        return [row for batch in table.read() for row in pa.record_batch(batch).to_pylist()]

    def by_spark(self) -> list[dict[str, object]]:
        """Return the table's rows as Spark reads them."""
        rows = self.engines.spark.read.format("hudi").load(self.spec.uri())
        return [row.asDict() for row in rows.collect()]
