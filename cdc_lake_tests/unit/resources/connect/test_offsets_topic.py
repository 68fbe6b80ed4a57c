"""Source offsets in Connect's topic: the newest of each source partition of a connector."""

from __future__ import annotations

import pytest

from cdc_lake_tests.fakes.source.kafka import FakeKafka
from resources.connect.offsets_topic import OffsetsUnreadable, StoredOffsets

SHOP = b'["shop",{"server":"shop"}]'
"""A key as a worker writes it. Its tombstone must have the same bytes, including blanks."""


@pytest.fixture
def kafka() -> FakeKafka:
    """A topic with two partitions and the offsets of two connectors."""
    fake = FakeKafka()
    fake.make("offsets", partitions=2)
    fake.send("offsets", b'{"lsn":1}', 0, SHOP)
    fake.send("offsets", b'{"lsn":5}', 1, b'["other",{"server":"other"}]')
    fake.send("offsets", b'{"lsn":2}', 0, SHOP)
    return fake


def test_the_newest_offset_of_the_connector_is_returned(kafka: FakeKafka) -> None:
    assert StoredOffsets(kafka, "offsets").read("shop") == ({"lsn": 2},)
    assert StoredOffsets(kafka, "offsets").read("sho") == ()


def test_each_source_partition_has_its_own_offset(kafka: FakeKafka) -> None:
    kafka.send("offsets", b'{"lsn":9}', 1, b'["shop",{"server":"second"}]')
    assert StoredOffsets(kafka, "offsets").read("shop") == ({"lsn": 2}, {"lsn": 9})


def test_only_the_newest_records_are_read(kafka: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    for lsn in range(500):
        kafka.send("offsets", b'{"lsn":%d}' % lsn, 0, SHOP)

    def fail(_: StoredOffsets) -> None:
        raise AssertionError("the whole topic was read")

    with monkeypatch.context() as patched:
        patched.setattr(StoredOffsets, "_records", fail)
        assert StoredOffsets(kafka, "offsets").read("shop") == ({"lsn": 499},)
    assert StoredOffsets(kafka, "offsets").read("other") == ({"lsn": 5},)


def test_ending_removes_the_offsets_of_one_connector(kafka: FakeKafka) -> None:
    stored = StoredOffsets(kafka, "offsets")
    assert stored.delete("shop") == 1
    assert (stored.read("shop"), stored.read("other")) == ((), ({"lsn": 5},))
    last = list(kafka.peek("offsets", 0))[-1]
    assert (last.key, last.value) == (SHOP, None)
    assert stored.delete("shop") == 0


def test_offsets_can_be_stored_again_after_ending(kafka: FakeKafka) -> None:
    stored = StoredOffsets(kafka, "offsets")
    stored.delete("shop")
    kafka.send("offsets", b'{"lsn":30}', 0, SHOP)
    assert stored.read("shop") == ({"lsn": 30},)


def test_a_missing_topic_has_no_offsets() -> None:
    assert StoredOffsets(FakeKafka(), "offsets").read("shop") == ()
    assert StoredOffsets(FakeKafka(), "offsets").delete("shop") == 0


@pytest.mark.parametrize(("key", "value"), [(b"no JSON", b"{}"), (b'"shop"', b"{}"), (SHOP, b"[]"), (SHOP, b"\xff")])
def test_other_records_in_the_topic_are_rejected(kafka: FakeKafka, key: bytes, value: bytes) -> None:
    kafka.send("offsets", value, 0, key)
    with pytest.raises(
        OffsetsUnreadable, match=r"topic offsets: Kafka Connect does not write .*offset\.storage\.topic"
    ):
        StoredOffsets(kafka, "offsets").read("shop")
