"""Bad records that must not stop a pipeline, one of each kind, and a topic that contains them among good records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Message, Producer

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import S3Store
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert import UpsertReport
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.maintenance import replay
from cdc_lake.jobs.maintenance.replay import ReplayReport, ReplaySpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.engines import Engines

SOURCE = "public.orders"
LARGE = 10 * 2**20


def good(key: int, lsn: int, **values: object) -> bytes:
    """Return a readable record."""
    return json.dumps(event(key, "u", lsn, **values)).encode()  # type: ignore[arg-type]


def _renamed(old: bytes, new: bytes) -> bytes:
    return good(900, 900).replace(old, new)


AT_LANDING: list[tuple[bytes | None, str]] = [
    (None, "the record has no value"),
    (b"", "the record's value is empty"),
    (b"\n", "line break"),
    (json.dumps(event(900, "u", 900), indent=1).encode(), "line break"),
    (good(900, 900, note="x" * LARGE), f"more than the {8 * 2**20:,} of landing.record_bytes"),
]
"""Records that cannot be landed, with the reason."""

AT_READING: list[tuple[bytes, str]] = [
    (b"not JSON at all", "not a JSON object"),
    (good(900, 900)[:-1], "not a JSON object"),
    (good(900, 900)[:40], "not a JSON object"),
    (b"\x00\x01\x02\x03\x04", "not a JSON object"),  # the first bytes of an Avro converter's message
    (b"[1, 2]", "not a JSON object"),
    (b'"text"', "not a JSON object"),
    (b"null", "not a JSON object"),
    (b"NaN", "not a JSON object"),
    (b"\xef\xbb\xbf" + good(900, 900), "not a JSON object"),
    (good(900, 900).replace(b'"', b"'"), "not a JSON object"),
    (good(900, 900) + b" and more", "more than one JSON object"),
    (good(900, 900) + good(901, 901), "more than one JSON object"),
    (good(900, 900) + b"," + good(901, 901), "more than one JSON object"),
    (good(900, 900, note="x").replace(b'"x"', b'"\xff\xfe"'), "not UTF-8"),
    (good(900, 900, note="x").replace(b'"x"', b'"\xc3"'), "not UTF-8"),
    (good(900, 900, note="x").replace(b'"x"', b"[" * 100_000 + b"]" * 100_000), "JSON object"),
    (b"[" * 100_000, "not a JSON object"),
    (b"{}", "fields are missing: "),
    (json.dumps({"schema": {}, "payload": event(900, "u", 900)}).encode(), "fields"),
    (json.dumps({"before": None, "after": {"id": 900}, "op": "c"}).encode(), "fields"),
    (_renamed(b'"note"', b'"id": null, "note"'), "twice"),
    (_renamed(b'"qty": 1', b'"qty": 1, "qty": 2'), "twice"),
    (_renamed(b'"qty": 1', b'"qty": 1, "qty": 1'), "twice"),
    (_renamed(b'"id": 900', b'"id": null'), "the key column id is NULL"),
    (_renamed(b'"id": 900', b'"id": "nine"'), "Cannot read column id: '.*' is not a valid int"),
    (_renamed(b'"id": 900', b'"id": 9.5'), "Cannot read column id: '.*' is not a valid int"),
    (_renamed(b'"id": 900', b'"id": 1e3'), "Cannot read column id: '.*' is not a valid int"),
    (_renamed(b'"id": 900', b'"id": 99999999999'), "Cannot read column id: '.*' is not a valid int"),
    (_renamed(b'"id": 900', b'"id": {"a": 9}'), "Cannot read column id: '.*' is not a valid int"),
    (_renamed(b'"qty": 1', b'"qty": 9223372036854775808'), "Cannot read column qty: '.*' is not a valid bigint"),
    (_renamed(b'"qty": 1', b'"qty": true'), "Cannot read column qty: '.*' is not a valid bigint"),
    (_renamed(b'"qty": 1', b'"qty": 1' + b"0" * 2000), "column qty: '.*' is not a valid bigint"),
    (_renamed(b'"__lsn": 900', b'"__lsn": null'), "no __lsn"),
    (_renamed(b'"__lsn": 900', b'"__lsn": "0/15D6A28"'), "Cannot read column __lsn: '.*' is not a valid bigint"),
    (_renamed(b'"__table": "orders"', b'"__table": "or ders"'), "to table public.or ders, not to public.orders"),
    (_renamed(b'"__schema": "public"', b'"__schema": null'), "to table orders, not to public.orders"),
    (
        _renamed(b'"__deleted": "false"', b'"__deleted": "perhaps"'),
        "Cannot read column __deleted: '.*' is not a valid boolean",
    ),
]
"""Records that are landed and cannot be read, with the reason."""


@dataclass
class PoisonedTopic:
    """A topic with its own pipeline and table; `places` are the offsets of the sent records, in order."""

    engines: Engines
    name: str
    columns: Sequence[Column] = COLUMNS
    places: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engines.kafka.ensure_topic(self.name, 1)
        seen = TableSchema(version=0, table=SOURCE, columns=tuple(self.columns), key=KEY)
        captured_schema.record(self.store, self.name, seen)

    @property
    def store(self) -> S3Store:
        """The bucket."""
        return self.engines.location.store()

    @property
    def table(self) -> UpsertSpec:
        """The upsert's specification; it does not wait for a lease that another writer holds."""
        return UpsertSpec(self.engines.location, self.name, self.name, SOURCE, "orders", KEY, lease_wait_seconds=0)

    def send(self, *values: bytes | None) -> list[int]:
        """Produce records, each with a key and a header, and return their offsets."""
        kafka = self.engines.kafka
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0, "message.max.bytes": 16 * 2**20})
        offsets: list[int] = []

        def keep(error: object, message: Message) -> None:
            assert error is None, error
            offset = message.offset()
            assert offset is not None
            offsets.append(offset)

        for number, value in enumerate(values):
            key = f"key {number}".encode()
            producer.produce(self.name, value=value, key=key, headers=[("by", b"\xff")], partition=0, on_delivery=keep)
        assert producer.flush(60) == 0
        self.places += offsets
        return offsets

    def land(self, **changes: int) -> LandReport:
        """Land the records that are not landed yet."""
        kafka = self.engines.kafka
        found = kafka.topic(self.name)
        assert found is not None
        head = Chain(self.store, self.name, self.name).length()
        spec = LandSpec(
            self.engines.location,
            self.name,
            self.name,
            found.topic_id,
            kafka.begin_offsets(self.name),
            kafka.end_offsets(self.name),
            "",
            head,
            {"bootstrap.servers": kafka.bootstrap},
            **changes,  # type: ignore[arg-type]  # limits
        )
        return land.run(self.engines.spark, spec)

    def upsert(self) -> UpsertReport:
        """Apply the manifests that are not applied yet."""
        return upsert.run(self.engines.spark, self.table)

    def deliver(self, *values: bytes | None) -> UpsertReport:
        """Send, land and apply records."""
        self.send(*values)
        self.land()
        return self.upsert()

    def replay(self, *ids: str) -> ReplayReport:
        """Replay the given letters, or all."""
        return replay.run(self.engines.spark, ReplaySpec(self.table, ids or None))

    def letters(self, closed: bool = False) -> dict[int, DeadLetter]:
        """Return the open or the closed letters by offset."""
        return {each.offset: each for each in dead_letters.letters(self.store, self.name, closed)}

    def checkpoint(self) -> timeline.Checkpoint:
        """Return the table's checkpoint."""
        commit = timeline.last_commit(self.store, self.table.prefix)
        assert commit is not None
        assert commit.checkpoint is not None
        return commit.checkpoint

    def rows(self) -> dict[int, dict[str, object]]:
        """Return the table's rows by key."""
        found = [row.asDict() for row in self.engines.spark.read.format("hudi").load(self.table.uri()).collect()]
        rows = {row["id"]: row for row in found}
        assert len(rows) == len(found)
        return rows
