"""Objects with the names and formats of the vendors' S3 sink connectors, and a topic as their input.

Sources of the formats: https://github.com/lensesio/stream-reactor (FileNamer.scala, JsonFormatWriter.scala, and for
the envelope S3SinkTaskJsonEnvelopeTest.scala), https://github.com/confluentinc/kafka-connect-storage-cloud
(TopicPartitionWriter.java, ByteArrayRecordWriterProvider.java),
https://github.com/Aiven-Open/cloud-storage-connectors-for-apache-kafka (s3-sink-connector/README.md,
OutputWriter.java).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cdc_lake.contract.source.topic_records import fingerprint_number
from cdc_lake.jobs.adoption.sink import Sink

Record = tuple[int, bytes]
"""Offset and value."""

LENSES = Sink("lenses", "raw/shop/_sink/")
LENSES_ENVELOPE = Sink("lenses", "raw/shop/_sink/", envelope=True)
BY_FIELD = Sink("lenses_by_field", "raw/shop/_sink/", envelope=True)
CONFLUENT = Sink("confluent", "raw/shop/_sink")
AIVEN = Sink("aiven", "raw/shop/_sink/")
AIVEN_ENVELOPE = Sink("aiven", "raw/shop/_sink/", envelope=True)
ORDERED_SINKS = (LENSES, LENSES_ENVELOPE, CONFLUENT, AIVEN, AIVEN_ENVELOPE)
ALL_SINKS = (*ORDERED_SINKS, BY_FIELD)


def object_key(sink: Sink, topic: str, partition: int, records: Sequence[Record], folder: str = "") -> str:
    """Return the key of an object with these records; `folder` is the prefix of a sink that partitions by fields."""
    first, last = records[0][0], records[-1][0]
    at = sink.prefix.rstrip("/")
    names = {
        "lenses": f"{at}/{topic}/{partition}/{last:012d}_{1_700_000_000_000 + first}_{1_700_000_000_000 + last}.json",
        "lenses_by_field": f"{at}/{folder}/{topic}({partition}_{last:012d}).json",
        "confluent": f"{at}/{topic}/partition={partition}/{topic}+{partition}+{first:010d}.json",
        "aiven": f"{sink.prefix}{topic}-{partition}-{first}.gz",
    }
    return names[sink.layout]


def written(sink: Sink, topic: str, partition: int, records: Iterable[Record]) -> bytes:
    """Return the body of an object with these records."""
    lines = [_line(sink, topic, partition, offset, value) for offset, value in records]
    if sink.layout == "aiven":
        return gzip.compress(b"\n".join(lines))
    return b"".join(line + b"\n" for line in lines)


def _line(sink: Sink, topic: str, partition: int, offset: int, value: bytes) -> bytes:
    if not sink.envelope:
        return value
    if sink.layout == "aiven":
        return b'{"key":"k","offset":%d,"timestamp":"2020-01-01T00:00:01Z","value":%s}' % (offset, value)
    place = {"partition": partition, "offset": offset, "topic": topic, "timestamp": 10001}
    metadata = json.dumps(place, separators=(",", ":")).encode()
    return b'{"headers":{"h1":"x"},"metadata":%s,"value":%s,"key":{"order_id":1}}' % (metadata, value)


@dataclass
class TopicInMemory:
    """The committed records of a topic by partition; other offsets are markers. Those before `begins` have expired."""

    values: dict[int, dict[int, bytes]]
    ends: dict[int, int]
    begins: dict[int, int] = field(default_factory=dict)

    def records(self, partition: int, first: int, end: int) -> list[tuple[int, int]] | None:
        """See TopicReader."""
        if first < self.begins.get(partition, 0):
            return None
        there = sorted(self.values[partition].items())
        return [(offset, fingerprint_number(value)) for offset, value in there if first <= offset < end]

    @classmethod
    def of(cls, offsets: Iterable[int], end: int, partition: int = 0) -> TopicInMemory:
        """Return a topic of one partition with records at these offsets."""
        return cls({partition: {offset: b'{"n": %d}' % offset for offset in offsets}}, {partition: end})

    def records_between(self, first: int, last: int, partition: int = 0) -> list[Record]:
        """Return the records from one offset to another."""
        return [(offset, value) for offset, value in sorted(self.values[partition].items()) if first <= offset <= last]
