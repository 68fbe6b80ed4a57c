"""A fake of Kafka in memory: topics, records and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
from pydantic import PrivateAttr

from cdc_lake_tests.fakes.steps import Noting, Steps
from resources.errors import TopicMissing
from resources.kafka import record_batches
from resources.kafka.records import Message, Ranges
from resources.kafka.resource import Kafka
from resources.kafka.topic_changes import TopicChange
from resources.kafka.topic_settings import TopicInfo


@dataclass
class FakeTopic:
    """A topic: records by partition; those before `begins` have expired."""

    topic_id: str
    config: dict[str, str]
    records: dict[int, list[Message]]
    begins: dict[int, int]
    open_from: dict[int, int] = field(default_factory=dict)
    """The offset of the first record of an open transaction, by partition."""


class FakeKafka(Noting, Kafka):
    bootstrap: str = "nowhere:9092"
    _topics: dict[str, FakeTopic] = PrivateAttr(default_factory=dict)
    _steps: Steps = PrivateAttr(default_factory=Steps)
    _made: int = PrivateAttr(default=0)

    def make(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> FakeTopic:
        """Create a topic; an existing one is replaced by one with another id."""
        self._made += 1
        settings = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1", **(config or {})}
        empty: dict[int, list[Message]] = {partition: [] for partition in range(partitions)}
        self._topics[name] = FakeTopic(f"id-{self._made}", settings, empty, dict.fromkeys(empty, 0))
        return self._topics[name]

    def send(self, name: str, value: bytes | None, partition: int = 0, key: bytes | None = None) -> int:
        """Append a record. Return its offset."""
        records = self._topics[name].records[partition]
        records.append(Message(partition, len(records), 1000 + len(records), key, value))
        return len(records) - 1

    def topics(self) -> tuple[str, ...]:
        """See Kafka."""
        return tuple(sorted(self._topics))

    def topic(self, name: str) -> TopicInfo | None:
        """See Kafka."""
        found = self._topics.get(name)
        return None if found is None else TopicInfo(name, found.topic_id, len(found.records), dict(found.config))

    def ensure_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> TopicChange:
        """See Kafka."""
        missing = name not in self._topics
        if missing:
            self.make(name, partitions, config)
        found = self._topics[name]
        info = TopicInfo(name, found.topic_id, len(found.records), dict(found.config))
        return TopicChange("created" if missing else "unchanged", info)

    def delete_topic(self, name: str) -> bool:
        """See Kafka."""
        if name not in self._topics:
            return False
        self._steps.take(f"topic {name}")
        del self._topics[name]
        return True

    def begin_offsets(self, topic: str) -> dict[int, int]:
        """See Kafka."""
        return dict(self._topics[topic].begins)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """See Kafka."""
        return {**self.written_offsets(topic), **self._topics[topic].open_from}

    def written_offsets(self, topic: str) -> dict[int, int]:
        """See Kafka."""
        return {partition: len(records) for partition, records in self._topics[topic].records.items()}

    def hold(self, topic: str, partition: int, offset: int | None) -> None:
        """Begin a transaction at this offset and leave it open, or end it."""
        found = self._topics[topic].open_from
        found.pop(partition, None) if offset is None else found.update({partition: offset})

    def peek(
        self,
        topic: str,
        partition: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        *,
        read_committed: bool = True,  # noqa: ARG002 - nothing is aborted here
    ) -> Iterator[Message]:
        """See Kafka."""
        if topic not in self._topics:
            raise TopicMissing(f"There is no topic {topic}.")
        found = self._topics[topic]
        chosen = found.records if partition is None else {partition: found.records[partition]}
        records = (m for p, all_of_it in chosen.items() for m in all_of_it[max(offset or 0, found.begins[p]) :])
        return islice(records, limit)

    def read(self, topic: str, ranges: Ranges) -> Iterator[Message]:
        """See Kafka."""
        return (
            message for message in self.peek(topic) if message.offset in range(*ranges.get(message.partition, (0, 0)))
        )

    def read_batches(self, topic: str, ranges: Ranges) -> Iterator[pa.RecordBatch]:
        """See Kafka."""
        for partition, bounds in ranges.items():
            rows = [
                {
                    **{name: getattr(message, name) for name in ("partition", "offset", "value", "key")},
                    "headers": [{"key": name, "value": value} for name, value in message.headers],
                }
                for message in self.read(topic, {partition: bounds})
            ]
            yield pa.RecordBatch.from_pylist(rows, record_batches.SCHEMA)

    def write_tombstones(self, topic: str, keys: Iterable[tuple[int, bytes]]) -> int:
        """See Kafka."""
        return len([self.send(topic, None, partition, key) for partition, key in keys])

    def count_records(self, topic: str, ranges: Ranges | None = None) -> int:
        """See Kafka."""
        spans = self.ranges(topic) if ranges is None else ranges
        return sum(1 for message in self.peek(topic) if message.offset in range(*spans[message.partition]))

    def tail(self, topic: str, limit: int, partition: int | None = None) -> list[Message]:
        """See Kafka."""
        return sorted(self.peek(topic, partition), key=lambda message: message.timestamp_ms or 0)[-limit:]
