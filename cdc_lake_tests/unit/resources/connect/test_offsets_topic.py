"""Source offsets in a topic as Connect writes them: the newest of each source partition, of one connector."""

from __future__ import annotations

import pytest

from cdc_lake_tests.fakes.kafka import FakeKafka
from resources.connect.offsets_topic import OffsetsUnreadable, StoredOffsets

SHOP = b'["shop",{"server":"shop"}]'
"""As a worker writes it, blanks and all: what is ended has to have the same bytes."""


@pytest.fixture
def kafka() -> FakeKafka:
    """A topic of two partitions that two connectors share."""
    made = FakeKafka()
    made.make("offsets", partitions=2)
    made.send("offsets", b'{"lsn":1}', 0, SHOP)
    made.send("offsets", b'{"lsn":5}', 1, b'["other",{"server":"other"}]')
    made.send("offsets", b'{"lsn":2}', 0, SHOP)
    return made


def test_the_newest_is_the_connector_s(kafka: FakeKafka) -> None:
    assert StoredOffsets(kafka, "offsets").of("shop") == ({"lsn": 2},)
    assert StoredOffsets(kafka, "offsets").of("sho") == ()


def test_every_source_partition_has_its_own(kafka: FakeKafka) -> None:
    kafka.send("offsets", b'{"lsn":9}', 1, b'["shop",{"server":"second"}]')
    assert StoredOffsets(kafka, "offsets").of("shop") == ({"lsn": 2}, {"lsn": 9})


def test_of_a_week_of_offsets_the_newest_records_are_read(kafka: FakeKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    for lsn in range(500):
        kafka.send("offsets", b'{"lsn":%d}' % lsn, 0, SHOP)

    def whole(_: StoredOffsets) -> None:
        raise AssertionError("the whole topic was read")

    with monkeypatch.context() as patched:
        patched.setattr(StoredOffsets, "_records", whole)
        assert StoredOffsets(kafka, "offsets").of("shop") == ({"lsn": 499},)
    assert StoredOffsets(kafka, "offsets").of("other") == ({"lsn": 5},)


def test_what_is_ended_is_one_connector_s(kafka: FakeKafka) -> None:
    stored = StoredOffsets(kafka, "offsets")
    assert stored.end("shop") == 1
    assert (stored.of("shop"), stored.of("other")) == ((), ({"lsn": 5},))
    last = list(kafka.peek("offsets", 0))[-1]
    assert (last.key, last.value) == (SHOP, None)
    assert stored.end("shop") == 0


def test_stored_again_after_its_end(kafka: FakeKafka) -> None:
    stored = StoredOffsets(kafka, "offsets")
    stored.end("shop")
    kafka.send("offsets", b'{"lsn":30}', 0, SHOP)
    assert stored.of("shop") == ({"lsn": 30},)


def test_a_topic_that_no_worker_has_made_yet_holds_nothing() -> None:
    assert StoredOffsets(FakeKafka(), "offsets").of("shop") == ()
    assert StoredOffsets(FakeKafka(), "offsets").end("shop") == 0


@pytest.mark.parametrize(("key", "value"), [(b"no JSON", b"{}"), (b'"shop"', b"{}"), (SHOP, b"[]"), (SHOP, b"\xff")])
def test_a_topic_of_something_else_is_refused(kafka: FakeKafka, key: bytes, value: bytes) -> None:
    kafka.send("offsets", value, 0, key)
    with pytest.raises(OffsetsUnreadable, match=r"offsets has a record .*offset\.storage\.topic"):
        StoredOffsets(kafka, "offsets").of("shop")
