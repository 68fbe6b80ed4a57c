"""A bucket with the objects of a sink connector, and runs of the adoption job on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.adoption import adopt
from cdc_lake.jobs.adoption.adopt import AdoptReport, AdoptSpec
from cdc_lake.jobs.adoption.sink import Sink
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake_tests.helpers.memory_store import MemoryLocation, MemoryStore
from cdc_lake_tests.helpers.sink_objects import ALL_SINKS, ORDERED_SINKS, Record, TopicInMemory, object_key, written

TOPIC = "shop.public.orders"
HEARTBEAT = Watermark(source_ts_ms=1, lsn=1)


MARKERS = {4, 9, 14, 19}


def name_of(sink: Sink) -> str:
    """Return the id of a test."""
    return f"{sink.layout}{'-envelope' if sink.envelope else ''}"


each_sink = pytest.mark.parametrize("sink", ALL_SINKS, ids=name_of)
each_ordered_sink = pytest.mark.parametrize("sink", ORDERED_SINKS, ids=name_of)


def topic() -> TopicInMemory:
    """Return a topic with four transactions of four records, each followed by its end marker."""
    return TopicInMemory.of(sorted(set(range(20)) - MARKERS), 20)


@dataclass
class AdoptedTopic:
    """One topic with its sink and its manifest chain."""

    sink: Sink
    topic: TopicInMemory
    store: MemoryStore = field(default_factory=MemoryStore)
    topic_id: str = "AAAAAAAAAAAAAAAAAAAAAQ"
    objects_per_run: int = adopt.OBJECTS_PER_RUN
    watermark: Watermark = HEARTBEAT

    @property
    def chain(self) -> Chain:
        """Return the manifest chain."""
        return Chain(self.store, "shop", TOPIC)

    @property
    def spec(self) -> AdoptSpec:
        """Return the spec of a run up to the topic's end."""
        landing = LandSpec(
            location=cast("S3Location", MemoryLocation(self.store)),
            pipeline="shop",
            topic=TOPIC,
            topic_id=self.topic_id,
            begins=self.topic.begins,
            ends=self.topic.ends,
            chain="",
            head=self.chain.length(),
            kafka={},
            watermark=self.watermark,
        )
        return AdoptSpec(landing, self.sink, self.objects_per_run)

    def write(self, records: Sequence[Record], partition: int = 0, folder: str = "f") -> str:
        """Write an object as the connector does; return its key."""
        key = object_key(self.sink, TOPIC, partition, records, folder)
        self.store.write(key, written(self.sink, TOPIC, partition, records))
        return key

    def write_from(self, first: int, last: int, partition: int = 0, folder: str = "f") -> str:
        """Write an object of all records from offset first to last, both included; return its key."""
        return self.write(self.topic.records_between(first, last, partition), partition, folder)

    def run(self) -> AdoptReport:
        """Run the adoption job once."""
        return adopt.run(self.spec, self.topic)

    def new_objects(self) -> list[str]:
        """Return the new objects that a sensor finds."""
        return adopt.new_objects(self.store, self.spec)

    def adopted(self, partition: int = 0) -> list[Record]:
        """Return all records of the manifests in order, verified as readers do."""
        items = [item for manifest in self.chain.since(0) for item in manifest.objects if item.partition == partition]
        return [record for item in items for record in raw_objects.records(self.store, item)]

    def all(self, partition: int = 0) -> list[Record]:
        """Return every record that was ever written to the topic."""
        return sorted(self.topic.values[partition].items())

    @property
    def next(self) -> int:
        """Return the next offset of partition 0."""
        head = self.chain.head()
        return 0 if head is None else head.next_offsets()[0]
