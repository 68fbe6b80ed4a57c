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
from cdc_lake_tests.unit.jobs.adoption.adopted_topic import (
    HEARTBEAT,
    TOPIC,
    AdoptedTopic,
    each_ordered_sink,
    each_sink,
    name_of,
    topic,
)


@each_sink
def test_objects_in_order_are_adopted_up_to_the_end(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 6)
    adoption.write_from(7, 18)
    report = adoption.run()
    assert (report.records, report.objects, report.gaps) == (16, 2, ())
    assert adoption.adopted() == adoption.all()
    head = adoption.chain.head()
    assert head is not None
    assert (head.version, head.next_offsets(), head.watermark) == (3, {0: 20}, HEARTBEAT)
    assert adoption.new_objects() == []
    assert adoption.run().manifest is None


@each_sink
def test_records_that_the_connector_has_not_written_yet_are_adopted_later(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 8)
    assert adoption.run().records == 8
    head = adoption.chain.head()
    assert head is not None
    assert (head.next_offsets(), head.watermark) == ({0: 10}, None)  # after the marker, before the next record
    assert adoption.new_objects() == []
    adoption.write_from(10, 18)
    assert len(adoption.new_objects()) == 1
    assert adoption.run().records == 8
    assert adoption.adopted() == adoption.all()


@each_sink
def test_an_empty_topic_begins_a_chain_once(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, TopicInMemory.of([], 0))
    assert (adoption.run().manifest, adoption.run().manifest) == (1, None)
    head = adoption.chain.head()
    assert head is not None
    assert head.version == 3


@each_ordered_sink
def test_late_objects_hold_back_later_records(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 3)
    adoption.write_from(8, 12)
    report = adoption.run()
    assert (report.records, adoption.next) == (4, 5)
    assert report.gaps == (
        f"topic {TOPIC}, partition 0: 3 records are in no object (offsets 5 to 7), though "
        f"{object_key(sink, TOPIC, 0, adoption.topic.records_between(8, 12))} contains later ones",
    )
    with pytest.raises(ManifestGapError, match=r"in no object \(offsets 5 to 7\).*remove landing.sink from"):
        adoption.run()
    adoption.write_from(5, 7)
    assert adoption.run().gaps == ()
    adoption.write_from(13, 18)
    adoption.run()
    assert adoption.adopted() == adoption.all()


@each_sink
def test_repeated_offsets_are_adopted_once(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 8, folder="a")
    adoption.run()
    adoption.write_from(5, 12, folder="b")  # the connector restarted at a committed offset
    adoption.write_from(5, 7, folder="c")
    adoption.write_from(10, 18, folder="d")
    adoption.run()
    assert adoption.adopted() == adoption.all()
    assert adoption.new_objects() == []


@pytest.mark.parametrize("sink", [CONFLUENT, AIVEN, AIVEN_ENVELOPE], ids=name_of)
def test_an_object_rewritten_with_more_records_is_continued(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    key = adoption.write_from(5, 8)
    adoption.write_from(0, 3)
    adoption.run()
    before = adoption.adopted()
    assert adoption.write_from(5, 12) == key
    assert adoption.adopted() == before
    assert len(adoption.new_objects()) == 1
    adoption.run()
    adoption.write_from(13, 18)
    adoption.run()
    assert adoption.adopted() == adoption.all()


@pytest.mark.parametrize("sink", [CONFLUENT, AIVEN, AIVEN_ENVELOPE], ids=name_of)
def test_an_object_rewritten_before_a_later_one_was_adopted_is_continued(sink: Sink) -> None:
    """The connector restarts, writes an object again with more records, and its previous task writes one more."""
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 0)
    assert adoption.run().records == 1
    adoption.write_from(0, 3)
    adoption.write_from(1, 1)
    assert adoption.run().records == 1
    assert adoption.run().records == 2
    assert adoption.adopted() == adoption.all()[:4]


def test_records_of_several_field_folders_are_merged() -> None:
    adoption = AdoptedTopic(BY_FIELD, topic())
    everything = adoption.all()
    adoption.write(everything[0:12:3], folder="customer_id=ALFKI/order_id=1")
    adoption.write(everything[1:12:3], folder="customer_id=ANATR/order_id=2")
    report = adoption.run()
    assert [offset for offset, _ in adoption.adopted()] == [0, 1]
    assert "1 record is in no object (offset 2)" in report.gaps[0]
    assert adoption.run().manifest is None  # no error: the connector still buffers the records of that order
    adoption.write(everything[2:12:3], folder="customer_id=ANTON/order_id=3")
    adoption.run()
    assert sorted(adoption.adopted()) == everything[:12]
    adoption.write(everything[12:], folder="customer_id=ALFKI/order_id=1")
    adoption.run()
    assert sorted(adoption.adopted()) == everything
    assert len({item.key for manifest in adoption.chain.since(0) for item in manifest.objects}) == 4


@each_sink
def test_the_watermark_advances_while_the_connector_buffers_records(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, TopicInMemory.of(range(100), 0))
    passed = []
    for end in range(10, 101, 10):
        adoption.topic.ends[0] = end
        adoption.watermark = Watermark(source_ts_ms=end, lsn=end)
        adoption.write_from(end - 13 if end > 10 else 0, end - 4)
        adoption.run()
        head = adoption.chain.head()
        assert head is not None
        passed.append(None if head.watermark is None else head.watermark.lsn)
    assert passed == [None, *range(10, 100, 10)], "the watermark of the previous run, whose end offsets are adopted now"
    adoption.write_from(97, 99)
    adoption.run()
    head = adoption.chain.head()
    assert head is not None
    assert head.watermark == adoption.watermark


@each_sink
def test_records_after_the_runs_end_offsets_are_left_to_the_next_run(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 18)
    adoption.topic.ends[0] = 10
    adoption.run()
    adoption.topic.ends[0] = 20
    adoption.run()
    assert adoption.adopted() == adoption.all()


@pytest.mark.parametrize("sink", [LENSES_ENVELOPE, AIVEN_ENVELOPE, BY_FIELD], ids=name_of)
def test_records_with_offsets_do_not_need_the_topic(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, TopicInMemory.of(range(20), 20, 0))
    adoption.topic.begins[0] = 20
    adoption.write_from(0, 19)
    adoption.run()
    assert adoption.adopted() == adoption.all()


def test_an_adopted_object_whose_records_expired_does_not_block() -> None:
    adoption = AdoptedTopic(CONFLUENT, topic())
    adoption.write_from(0, 8)
    adoption.run()
    adoption.topic.begins[0] = 10
    adoption.topic.ends[0] = 20
    adoption.run()
    adoption.write_from(10, 18)
    adoption.run()
    assert adoption.adopted() == adoption.all()


@each_sink
def test_partitions_advance_independently(sink: Sink) -> None:
    records = {0: {0: b"1", 1: b"2"}, 1: {0: b"3", 1: b"4", 2: b"5"}}
    adoption = AdoptedTopic(sink, TopicInMemory(records, {0: 2, 1: 3}))
    adoption.write_from(0, 1, partition=0, folder="a")
    adoption.write_from(0, 1, partition=1, folder="b")
    adoption.run()
    adoption.write_from(2, 2, partition=1, folder="c")
    adoption.run()
    for partition in (0, 1):
        assert adoption.adopted(partition) == adoption.all(partition)


def test_a_backlog_is_adopted_in_several_manifests() -> None:
    adoption = AdoptedTopic(LENSES, topic(), objects_per_run=2)
    for offset, _ in adoption.all():
        adoption.write_from(offset, offset)
    runs = 0
    while adoption.new_objects():
        adoption.run()
        runs += 1
    assert runs == 8
    assert adoption.adopted() == adoption.all()


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT], ids=name_of)
def test_listing_costs_the_same_with_many_adopted_objects(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_store, "PAGE", 10)
    adoption = AdoptedTopic(sink, TopicInMemory.of(range(200), 200))
    adoption.topic.ends[0] = 199
    for offset in range(200):
        adoption.write_from(offset, offset)
    while adoption.new_objects():
        adoption.run()
    adoption.topic.ends[0] = 200
    adoption.store.forget_requests()
    assert adoption.run().records == 1
    assert adoption.store.requests["list"] == 2  # the sink's objects, and the check for a first manifest
    assert adoption.store.requests["get"] <= 9


@each_ordered_sink
def test_adoption_continues_a_chain_of_landing(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    item = landed(adoption.store, dict(adoption.topic.records_between(0, 6)))
    span = Span(partition=0, first=0, next=7)
    before = land.commit(adoption.chain, adoption.spec.landing, None, (span,), (item,))
    assert before.version == 3
    assert b'"sink"' not in before.encode()
    adoption.write_from(0, 3)
    adoption.write_from(5, 12)
    adoption.run()
    adoption.write_from(13, 18)
    adoption.run()
    assert adoption.adopted() == adoption.all()


def test_manifests_of_version_1_cannot_list_sink_objects() -> None:
    adoption = AdoptedTopic(LENSES, topic())
    adoption.write_from(0, 18)
    adoption.run()
    head = adoption.chain.head()
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
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 18)
    adoption.run()
    adoption.topic.values[0].update({offset: b'{"n": "rewritten %d"}' % offset for offset in range(15, 25)})
    adoption.topic.ends[0] = 25
    adoption.write_from(20, 24)
    with pytest.raises(
        TopicRecreatedError, match=r"last landed record has offset 18.*offset 19.*cdc-lake resnapshot shop"
    ):
        adoption.run()
    assert (adoption.chain.length(), adoption.next) == (1, 20)


@each_sink
def test_adoption_continues_if_the_last_adopted_record_has_expired(sink: Sink) -> None:
    """The record cannot be compared any more."""
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 18)
    adoption.run()
    adoption.topic.values[0].update({20: b'{"n": 20}', 21: b'{"n": 21}'})
    adoption.topic.ends[0], adoption.topic.begins[0] = 22, 20
    adoption.write_from(20, 21)
    assert adoption.run().records == 2


@pytest.mark.parametrize("sink", [CONFLUENT, AIVEN], ids=name_of)
@pytest.mark.parametrize("first", [100, 198], ids=["far back", "near the end"])
@pytest.mark.parametrize("followed", [False, True], ids=["the last object", "another object follows"])
def test_records_of_an_object_that_is_written_again_are_adopted_after_many_objects(
    sink: Sink, first: int, followed: bool
) -> None:
    """A connector that restarts writes from its committed offset again, as an object that is named by it."""
    adoption = AdoptedTopic(sink, TopicInMemory.of(range(300), 300))
    for offset in range(200):
        adoption.write_from(offset, offset)
    adoption.run()
    adoption.write_from(first, 250)
    if followed:
        adoption.write_from(251, 299)
    adoption.run()
    assert adoption.next == (300 if followed else 251)
