"""The Kafka resource on a real broker: only committed records are read and counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from cdc_lake_tests.integration.resources.source_side import Source
from resources.errors import OffsetsExpired, TopicContractBroken, TopicMissing
from resources.kafka.resource import Kafka
from resources.waiting import until

WEEK = {"retention.ms": "604800000"}
TOPIC = "kafka_resource"


@pytest.fixture
def kafka(source_engines: Source) -> Iterator[Kafka]:
    """Return the broker; delete the tests' topic before and after the test."""
    source_engines.kafka.delete_topic(TOPIC)
    yield source_engines.kafka
    source_engines.kafka.delete_topic(TOPIC)


def produce(kafka: Kafka, values: list[str], *, commit: bool = True, partition: int = 0) -> Producer:
    """Produce each value in its own transaction."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{TOPIC}-{partition}-{commit}"})
    producer.init_transactions()
    for value in values:
        producer.begin_transaction()
        producer.produce(TOPIC, value, key=f"k{value}", partition=partition, headers={"h": b"1"})
        producer.flush()
        before = kafka.end_offsets(TOPIC)[partition]
        producer.commit_transaction() if commit else producer.abort_transaction()
        wait_for_end(kafka, partition, before)
    return producer


def wait_for_end(kafka: Kafka, partition: int, before: int) -> None:
    """Wait until the end of a transaction is visible; the broker answers before it has written the marker."""
    until(
        lambda: kafka.end_offsets(TOPIC)[partition],
        lambda end: end > before,
        seconds=30,
        what="the end of a transaction to be visible",
        pause_seconds=0.02,
    )


def test_a_topic_is_created_checked_and_deleted(kafka: Kafka) -> None:
    assert kafka.topic(TOPIC) is None
    made = kafka.ensure_topic(TOPIC, 2, WEEK)
    assert (made.action, made.topic.partitions) == ("created", 2)
    assert made.topic.config == {"cleanup.policy": "delete", "retention.bytes": "-1", **WEEK}
    assert TOPIC in kafka.topics()
    assert kafka.ensure_topic(TOPIC, 2, WEEK).action == "unchanged"
    with pytest.raises(TopicContractBroken, match="from 2 to 3 partitions"):
        kafka.ensure_topic(TOPIC, 3, WEEK)
    assert kafka.delete_topic(TOPIC) is True
    assert kafka.delete_topic(TOPIC) is False
    assert TOPIC not in kafka.topics()
    assert kafka.ensure_topic(TOPIC, 2, WEEK).topic.topic_id != made.topic.topic_id


def test_retention_is_raised_and_never_lowered(kafka: Kafka) -> None:
    kafka.ensure_topic(TOPIC, 1, WEEK)
    assert kafka.ensure_topic(TOPIC, 1, {"retention.ms": "1000"}).action == "unchanged"
    raised = kafka.ensure_topic(TOPIC, 1, {"retention.ms": "704800000"})
    assert raised.changes == ("retention.ms: 604800000 -> 704800000",)
    assert kafka.ensure_topic(TOPIC, 1, {"retention.ms": "-1"}).topic.config["retention.ms"] == "-1"
    assert kafka.ensure_topic(TOPIC, 1, WEEK).action == "unchanged"


def test_a_compacted_topic_is_refused(kafka: Kafka) -> None:
    kafka.ensure_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    with pytest.raises(TopicContractBroken, match="compaction"):
        kafka.ensure_topic(TOPIC, 1, WEEK)


def test_only_committed_records_are_read_and_counted(kafka: Kafka) -> None:
    kafka.ensure_topic(TOPIC, 2, WEEK)
    assert kafka.tail(TOPIC, 1) == []
    assert kafka.count_records(TOPIC) == 0
    produce(kafka, ["1", "2"])
    produce(kafka, ["a", "b", "c", "d", "e", "f"], commit=False)
    produce(kafka, ["3"], partition=1)
    open_producer = produce(kafka, [])
    open_producer.begin_transaction()
    open_producer.produce(TOPIC, "open", partition=0)
    open_producer.flush()

    # Two offsets for each transaction of one record: the record's and the marker's.
    assert kafka.begin_offsets(TOPIC) == {0: 0, 1: 0}
    assert kafka.end_offsets(TOPIC) == {0: 16, 1: 2}
    assert kafka.written_offsets(TOPIC) == {0: 17, 1: 2}
    assert [(m.partition, m.offset, m.value) for m in kafka.peek(TOPIC, 0)] == [(0, 0, b"1"), (0, 2, b"2")]
    assert kafka.count_records(TOPIC) == 3
    assert kafka.count_records(TOPIC, {0: (1, 3)}) == 1
    assert [message.value for message in kafka.tail(TOPIC, 2)] == [b"2", b"3"]
    [newest] = kafka.tail(TOPIC, 1)
    assert (newest.key, newest.value, newest.headers) == (b"k3", b"3", (("h", b"1"),))
    batches = [batch.to_pylist() for batch in kafka.read_batches(TOPIC, kafka.ranges(TOPIC))]
    assert [(row["partition"], row["offset"], row["key"], row["value"]) for rows in batches for row in rows] == sorted(
        (message.partition, message.offset, message.key, message.value) for message in kafka.peek(TOPIC)
    )
    assert batches[0][0]["headers"] == [{"key": "h", "value": b"1"}]
    uncommitted = [message.value for message in kafka.peek(TOPIC, 0, read_committed=False)]
    assert uncommitted == [b"1", b"2", b"a", b"b", b"c", b"d", b"e", b"f"]

    before = kafka.end_offsets(TOPIC)[0]
    open_producer.commit_transaction()
    wait_for_end(kafka, 0, before)
    after = kafka.tail(TOPIC, 1, partition=0)
    assert [message.value for message in after] == [b"open"]


def test_large_records_are_read_in_several_batches(kafka: Kafka) -> None:
    kafka.ensure_topic(TOPIC, 1, WEEK)
    values = [f"{number:02d}" * 200_000 for number in range(50)]
    produce(kafka, values)
    batches = [batch.column("value").to_pylist() for batch in kafka.read_batches(TOPIC, kafka.ranges(TOPIC))]
    assert len(batches) > 1
    assert [value for batch in batches for value in batch] == [value.encode() for value in values]


def test_peek_takes_an_offset_and_a_limit(kafka: Kafka) -> None:
    kafka.ensure_topic(TOPIC, 1, WEEK)
    produce(kafka, ["1", "2", "3"])
    assert [message.value for message in kafka.peek(TOPIC, offset=1, limit=1)] == [b"2"]
    assert list(kafka.peek(TOPIC, offset=6)) == []
    with pytest.raises(OffsetsExpired, match="from offset 7: partition 0 starts at 0 and ends before 6"):
        kafka.peek(TOPIC, offset=7)


def test_a_missing_topic_or_partition_is_named(kafka: Kafka) -> None:
    with pytest.raises(TopicMissing, match=f"topic {TOPIC}: .* has no such topic"):
        kafka.end_offsets(TOPIC)
    kafka.ensure_topic(TOPIC, 1, WEEK)
    with pytest.raises(TopicMissing, match="no partition 1"):
        kafka.peek(TOPIC, partition=1)
