"""Adoption: records of sink connectors enter the chain once and in order, and a gap is never skipped."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cdc_lake.contract.errors import ManifestGapError, TopicRecreatedError
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.adoption.sink import Sink
from cdc_lake.jobs.landing import land
from cdc_lake_tests.helpers import memory_store
from cdc_lake_tests.helpers.sink_objects import (
    AIVEN,
    AIVEN_ENVELOPE,
    BY_FIELD,
    CONFLUENT,
    LENSES,
    LENSES_ENVELOPE,
    TopicInMemory,
    object_key,
)
from cdc_lake_tests.unit.contract.objects.landed import landed
from cdc_lake_tests.unit.jobs.adoption.adopting import (
    HEARTBEAT,
    TOPIC,
    Adopting,
    each_ordered_sink,
    each_sink,
    name_of,
    topic,
)


@each_sink
def test_objects_in_order_are_adopted_up_to_the_end(sink: Sink) -> None:
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 6)
    adopting.write_from(7, 18)
    report = adopting.run()
    assert (report.records, report.objects, report.gaps) == (16, 2, ())
    assert adopting.adopted() == adopting.all()
    head = adopting.chain.head()
    assert head is not None
    assert (head.version, head.next_offsets(), head.watermark) == (3, {0: 20}, HEARTBEAT)
    assert adopting.new_objects() == []
    assert adopting.run().manifest is None


@each_sink
def test_records_that_the_connector_has_not_written_yet_are_adopted_later(sink: Sink) -> None:
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 8)
    assert adopting.run().records == 8
    head = adopting.chain.head()
    assert head is not None
    assert (head.next_offsets(), head.watermark) == ({0: 10}, None)  # after the marker, before the next record
    assert adopting.new_objects() == []
    adopting.write_from(10, 18)
    assert len(adopting.new_objects()) == 1
    assert adopting.run().records == 8
    assert adopting.adopted() == adopting.all()


@each_sink
def test_an_empty_topic_begins_a_chain_once(sink: Sink) -> None:
    adopting = Adopting(sink, TopicInMemory.of([], 0))
    assert (adopting.run().manifest, adopting.run().manifest) == (1, None)
    head = adopting.chain.head()
    assert head is not None
    assert head.version == 3


@each_ordered_sink
def test_late_objects_hold_back_later_records(sink: Sink) -> None:
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 3)
    adopting.write_from(8, 12)
    report = adopting.run()
    assert (report.records, adopting.next) == (4, 5)
    assert report.gaps == (
        f"topic {TOPIC}, partition 0: 3 records are in no object (offsets 5 to 7), though "
        f"{object_key(sink, TOPIC, 0, adopting.topic.records_between(8, 12))} contains later ones",
    )
    with pytest.raises(ManifestGapError, match=r"in no object \(offsets 5 to 7\).*remove landing.sink from"):
        adopting.run()
    adopting.write_from(5, 7)
    assert adopting.run().gaps == ()
    adopting.write_from(13, 18)
    adopting.run()
    assert adopting.adopted() == adopting.all()


@each_sink
def test_repeated_offsets_are_adopted_once(sink: Sink) -> None:
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 8, folder="a")
    adopting.run()
    adopting.write_from(5, 12, folder="b")  # the connector restarted at a committed offset
    adopting.write_from(5, 7, folder="c")
    adopting.write_from(10, 18, folder="d")
    adopting.run()
    assert adopting.adopted() == adopting.all()
    assert adopting.new_objects() == []


@pytest.mark.parametrize("sink", [CONFLUENT, AIVEN, AIVEN_ENVELOPE], ids=name_of)
def test_an_object_rewritten_with_more_records_is_continued(sink: Sink) -> None:
    adopting = Adopting(sink, topic())
    key = adopting.write_from(5, 8)
    adopting.write_from(0, 3)
    adopting.run()
    before = adopting.adopted()
    assert adopting.write_from(5, 12) == key
    assert adopting.adopted() == before
    assert len(adopting.new_objects()) == 1
    adopting.run()
    adopting.write_from(13, 18)
    adopting.run()
    assert adopting.adopted() == adopting.all()


@pytest.mark.parametrize("sink", [CONFLUENT, AIVEN, AIVEN_ENVELOPE], ids=name_of)
def test_an_object_rewritten_before_a_later_one_was_adopted_is_continued(sink: Sink) -> None:
    """The connector restarts, writes an object again with more records, and its previous task writes one more."""
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 0)
    assert adopting.run().records == 1
    adopting.write_from(0, 3)
    adopting.write_from(1, 1)
    assert adopting.run().records == 1
    assert adopting.run().records == 2
    assert adopting.adopted() == adopting.all()[:4]


def test_records_of_several_field_folders_are_merged() -> None:
    adopting = Adopting(BY_FIELD, topic())
    everything = adopting.all()
    adopting.write(everything[0:12:3], folder="customer_id=ALFKI/order_id=1")
    adopting.write(everything[1:12:3], folder="customer_id=ANATR/order_id=2")
    report = adopting.run()
    assert [offset for offset, _ in adopting.adopted()] == [0, 1]
    assert "1 record is in no object (offset 2)" in report.gaps[0]
    assert adopting.run().manifest is None  # no error: the connector still buffers the records of that order
    adopting.write(everything[2:12:3], folder="customer_id=ANTON/order_id=3")
    adopting.run()
    assert sorted(adopting.adopted()) == everything[:12]
    adopting.write(everything[12:], folder="customer_id=ALFKI/order_id=1")
    adopting.run()
    assert sorted(adopting.adopted()) == everything
    assert len({item.key for manifest in adopting.chain.since(0) for item in manifest.objects}) == 4


@each_sink
def test_the_watermark_advances_while_the_connector_buffers_records(sink: Sink) -> None:
    adopting = Adopting(sink, TopicInMemory.of(range(100), 0))
    passed = []
    for end in range(10, 101, 10):
        adopting.topic.ends[0] = end
        adopting.watermark = Watermark(source_ts_ms=end, lsn=end)
        adopting.write_from(end - 13 if end > 10 else 0, end - 4)
        adopting.run()
        head = adopting.chain.head()
        assert head is not None
        passed.append(None if head.watermark is None else head.watermark.lsn)
    assert passed == [None, *range(10, 100, 10)], "the watermark of the previous run, whose end offsets are adopted now"
    adopting.write_from(97, 99)
    adopting.run()
    head = adopting.chain.head()
    assert head is not None
    assert head.watermark == adopting.watermark


@each_sink
def test_records_after_the_runs_end_offsets_are_left_to_the_next_run(sink: Sink) -> None:
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 18)
    adopting.topic.ends[0] = 10
    adopting.run()
    adopting.topic.ends[0] = 20
    adopting.run()
    assert adopting.adopted() == adopting.all()


@pytest.mark.parametrize("sink", [LENSES_ENVELOPE, AIVEN_ENVELOPE, BY_FIELD], ids=name_of)
def test_records_with_offsets_do_not_need_the_topic(sink: Sink) -> None:
    adopting = Adopting(sink, TopicInMemory.of(range(20), 20, 0))
    adopting.topic.begins[0] = 20
    adopting.write_from(0, 19)
    adopting.run()
    assert adopting.adopted() == adopting.all()


def test_an_adopted_object_whose_records_expired_does_not_block() -> None:
    adopting = Adopting(CONFLUENT, topic())
    adopting.write_from(0, 8)
    adopting.run()
    adopting.topic.begins[0] = 10
    adopting.topic.ends[0] = 20
    adopting.run()
    adopting.write_from(10, 18)
    adopting.run()
    assert adopting.adopted() == adopting.all()


@each_sink
def test_partitions_advance_independently(sink: Sink) -> None:
    records = {0: {0: b"1", 1: b"2"}, 1: {0: b"3", 1: b"4", 2: b"5"}}
    adopting = Adopting(sink, TopicInMemory(records, {0: 2, 1: 3}))
    adopting.write_from(0, 1, partition=0, folder="a")
    adopting.write_from(0, 1, partition=1, folder="b")
    adopting.run()
    adopting.write_from(2, 2, partition=1, folder="c")
    adopting.run()
    for partition in (0, 1):
        assert adopting.adopted(partition) == adopting.all(partition)


def test_a_backlog_is_adopted_in_several_manifests() -> None:
    adopting = Adopting(LENSES, topic(), objects_per_run=2)
    for offset, _ in adopting.all():
        adopting.write_from(offset, offset)
    runs = 0
    while adopting.new_objects():
        adopting.run()
        runs += 1
    assert runs == 8
    assert adopting.adopted() == adopting.all()


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT], ids=name_of)
def test_listing_costs_the_same_with_many_adopted_objects(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_store, "PAGE", 10)
    adopting = Adopting(sink, TopicInMemory.of(range(200), 200))
    adopting.topic.ends[0] = 199
    for offset in range(200):
        adopting.write_from(offset, offset)
    while adopting.new_objects():
        adopting.run()
    adopting.topic.ends[0] = 200
    adopting.store.forget_requests()
    assert adopting.run().records == 1
    assert adopting.store.requests["list"] == 2  # the sink's objects, and the check for a first manifest
    assert adopting.store.requests["get"] <= 9


@each_ordered_sink
def test_adoption_continues_a_chain_of_landing(sink: Sink) -> None:
    adopting = Adopting(sink, topic())
    item = landed(adopting.store, dict(adopting.topic.records_between(0, 6)))
    span = Span(partition=0, first=0, next=7)
    before = land.commit(adopting.chain, adopting.spec.landing, None, (span,), (item,))
    assert before.version == 3
    assert b'"sink"' not in before.encode()
    adopting.write_from(0, 3)
    adopting.write_from(5, 12)
    adopting.run()
    adopting.write_from(13, 18)
    adopting.run()
    assert adopting.adopted() == adopting.all()


def test_manifests_of_version_1_cannot_list_sink_objects() -> None:
    adopting = Adopting(LENSES, topic())
    adopting.write_from(0, 18)
    adopting.run()
    head = adopting.chain.head()
    assert head is not None
    assert Manifest.decode(head.encode()) == head
    without_last = head.model_copy(update={"spans": (Span(partition=0, first=0, next=20),)}).encode()
    assert Manifest.decode(without_last.replace(b'"version": 3', b'"version": 2')).version == 2
    with pytest.raises(ValidationError, match="which version 1 does not support"):
        Manifest.decode(without_last.replace(b'"version": 3', b'"version": 1'))
    with pytest.raises(ValidationError, match="version"):
        Manifest.decode(without_last.replace(b'"version": 3', b'"version": 4'))


@each_sink
def test_a_topic_that_lost_its_tail_and_got_new_records_stops(sink: Sink) -> None:
    """Offsets 15 to 19 were lost and reused; the new records at 15 to 19 would never be adopted."""
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 18)
    adopting.run()
    adopting.topic.values[0].update({offset: b'{"n": "rewritten %d"}' % offset for offset in range(15, 25)})
    adopting.topic.ends[0] = 25
    adopting.write_from(20, 24)
    with pytest.raises(
        TopicRecreatedError, match=r"last landed record has offset 18.*offset 19.*cdc-lake resnapshot shop"
    ):
        adopting.run()
    assert (adopting.chain.length(), adopting.next) == (1, 20)


@each_sink
def test_adoption_continues_if_the_last_adopted_record_has_expired(sink: Sink) -> None:
    """The record cannot be compared any more."""
    adopting = Adopting(sink, topic())
    adopting.write_from(0, 18)
    adopting.run()
    adopting.topic.values[0].update({20: b'{"n": 20}', 21: b'{"n": 21}'})
    adopting.topic.ends[0], adopting.topic.begins[0] = 22, 20
    adopting.write_from(20, 21)
    assert adopting.run().records == 2


@pytest.mark.parametrize("sink", [CONFLUENT, AIVEN], ids=name_of)
@pytest.mark.parametrize("first", [100, 198], ids=["far back", "near the end"])
@pytest.mark.parametrize("followed", [False, True], ids=["the last object", "another object follows"])
def test_records_of_an_object_that_is_written_again_are_adopted_after_many_objects(
    sink: Sink, first: int, followed: bool
) -> None:
    """A connector that restarts writes from its committed offset again, as an object that is named by it."""
    adopting = Adopting(sink, TopicInMemory.of(range(300), 300))
    for offset in range(200):
        adopting.write_from(offset, offset)
    adopting.run()
    adopting.write_from(first, 250)
    if followed:
        adopting.write_from(251, 299)
    adopting.run()
    assert adopting.next == (300 if followed else 251)
