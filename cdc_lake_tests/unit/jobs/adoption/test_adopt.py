"""Adoption: what sink connectors wrote comes into the chain once, in order, and a gap is never passed over."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cdc_lake.contract.errors import ManifestGapError, TopicRecreatedError
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.adoption.listing import Sink
from cdc_lake.jobs.landing import land
from cdc_lake_tests import memory_store
from cdc_lake_tests.sink_objects import (
    AIVEN,
    AIVEN_ENVELOPE,
    BY_FIELD,
    CONFLUENT,
    LENSES,
    LENSES_ENVELOPE,
    TopicInMemory,
    named,
)
from cdc_lake_tests.unit.contract.objects.landed import landed
from cdc_lake_tests.unit.jobs.adoption.adopting import BEAT, TOPIC, Adopting, every, name_of, ordered, topic


@every
def test_objects_in_order_are_adopted_to_the_end(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.write_from(0, 6)
    here.write_from(7, 18)
    report = here.run()
    assert (report.records, report.objects, report.waiting) == (16, 2, ())
    assert here.adopted() == here.all()
    head = here.chain.head()
    assert head is not None
    assert (head.version, head.next_offsets(), head.watermark) == (3, {0: 20}, BEAT)
    assert here.new_objects() == []
    assert here.run().manifest is None


@every
def test_what_the_connector_has_not_written_yet_is_waited_for(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.write_from(0, 8)
    assert here.run().records == 8
    head = here.chain.head()
    assert head is not None
    assert (head.next_offsets(), head.watermark) == ({0: 10}, None)  # past the marker, up to a record
    assert here.new_objects() == []
    here.write_from(10, 18)
    assert len(here.new_objects()) == 1
    assert here.run().records == 8
    assert here.adopted() == here.all()


@every
def test_a_topic_without_objects_begins_a_chain_once(sink: Sink) -> None:
    here = Adopting(sink, TopicInMemory.of([], 0))
    assert (here.run().manifest, here.run().manifest) == (1, None)
    head = here.chain.head()
    assert head is not None
    assert head.version == 3


@ordered
def test_late_objects_hold_back_what_comes_after_them(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.write_from(0, 3)
    here.write_from(8, 12)
    report = here.run()
    assert (report.records, here.next) == (4, 5)
    assert report.waiting == (
        f"topic {TOPIC}, partition 0: 3 records of offsets 5 to 7 are in no object, though "
        f"{named(sink, TOPIC, 0, here.topic.some(8, 12))} holds later ones",
    )
    with pytest.raises(ManifestGapError, match=r"offsets 5 to 7 are in no object.*landing.sink out of"):
        here.run()
    here.write_from(5, 7)
    assert here.run().waiting == ()
    here.write_from(13, 18)
    here.run()
    assert here.adopted() == here.all()


@every
def test_offsets_that_are_told_again_are_one_record(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.write_from(0, 8, folder="a")
    here.run()
    here.write_from(5, 12, folder="b")  # the connector began again at an offset that it had committed
    here.write_from(5, 7, folder="c")
    here.write_from(10, 18, folder="d")
    here.run()
    assert here.adopted() == here.all()
    assert here.new_objects() == []


@pytest.mark.parametrize("sink", [CONFLUENT, AIVEN, AIVEN_ENVELOPE], ids=name_of)
def test_an_object_that_is_written_again_with_more_is_read_on(sink: Sink) -> None:
    here = Adopting(sink, topic())
    key = here.write_from(5, 8)
    here.write_from(0, 3)
    here.run()
    before = here.adopted()
    assert here.write_from(5, 12) == key
    assert here.adopted() == before
    assert len(here.new_objects()) == 1
    here.run()
    here.write_from(13, 18)
    here.run()
    assert here.adopted() == here.all()


def test_folders_by_field_lie_among_one_another() -> None:
    here = Adopting(BY_FIELD, topic())
    everything = here.all()
    here.write(everything[0:12:3], folder="customer_id=ALFKI/order_id=1")
    here.write(everything[1:12:3], folder="customer_id=ANATR/order_id=2")
    report = here.run()
    assert [offset for offset, _ in here.adopted()] == [0, 1]
    assert "1 records of offsets 2 to 2 are in no object" in report.waiting[0]
    assert here.run().manifest is None  # no error: the connector has that order's records buffered yet
    here.write(everything[2:12:3], folder="customer_id=ANTON/order_id=3")
    here.run()
    assert sorted(here.adopted()) == everything[:12]
    here.write(everything[12:], folder="customer_id=ALFKI/order_id=1")
    here.run()
    assert sorted(here.adopted()) == everything
    assert len({item.key for manifest in here.chain.since(0) for item in manifest.objects}) == 4


@every
def test_the_watermark_follows_though_the_connector_always_holds_something_back(sink: Sink) -> None:
    here = Adopting(sink, TopicInMemory.of(range(100), 0))
    passed = []
    for end in range(10, 101, 10):
        here.topic.ends[0] = end
        here.watermark = Watermark(source_ts_ms=end, lsn=end)
        here.write_from(end - 13 if end > 10 else 0, end - 4)
        here.run()
        head = here.chain.head()
        assert head is not None
        passed.append(None if head.watermark is None else head.watermark.lsn)
    assert passed == [None, *range(10, 100, 10)], "that of the run before, whose ends are adopted by now"
    here.write_from(97, 99)
    here.run()
    head = here.chain.head()
    assert head is not None
    assert head.watermark == here.watermark


@every
def test_the_end_is_fixed_before_the_run(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.write_from(0, 18)
    here.topic.ends[0] = 10
    here.run()
    here.topic.ends[0] = 20
    here.run()
    assert here.adopted() == here.all()


@pytest.mark.parametrize("sink", [LENSES_ENVELOPE, AIVEN_ENVELOPE, BY_FIELD], ids=name_of)
def test_offsets_in_the_records_need_no_topic(sink: Sink) -> None:
    here = Adopting(sink, TopicInMemory.of(range(20), 20, 0))
    here.topic.begins[0] = 20
    here.write_from(0, 19)
    here.run()
    assert here.adopted() == here.all()


def test_an_old_object_is_no_obstacle_where_the_topic_forgot_it() -> None:
    here = Adopting(CONFLUENT, topic())
    here.write_from(0, 8)
    here.run()
    here.topic.begins[0] = 10
    here.topic.ends[0] = 20
    here.run()
    here.write_from(10, 18)
    here.run()
    assert here.adopted() == here.all()


@every
def test_partitions_go_on_by_themselves(sink: Sink) -> None:
    records = {0: {0: b"1", 1: b"2"}, 1: {0: b"3", 1: b"4", 2: b"5"}}
    here = Adopting(sink, TopicInMemory(records, {0: 2, 1: 3}))
    here.write_from(0, 1, partition=0, folder="a")
    here.write_from(0, 1, partition=1, folder="b")
    here.run()
    here.write_from(2, 2, partition=1, folder="c")
    here.run()
    for partition in (0, 1):
        assert here.adopted(partition) == here.all(partition)


def test_a_backlog_is_adopted_in_several_manifests() -> None:
    here = Adopting(LENSES, topic(), objects_per_run=2)
    for offset, _ in here.all():
        here.write_from(offset, offset)
    runs = 0
    while here.new_objects():
        here.run()
        runs += 1
    assert runs == 8
    assert here.adopted() == here.all()


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT], ids=name_of)
def test_listing_costs_what_is_new(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_store, "PAGE", 10)
    here = Adopting(sink, TopicInMemory.of(range(200), 200))
    here.topic.ends[0] = 199
    for offset in range(200):
        here.write_from(offset, offset)
    while here.new_objects():
        here.run()
    here.topic.ends[0] = 200
    here.store.forget_requests()
    assert here.run().records == 1
    assert here.store.requests["list"] == 2  # the sink's objects, and whether the chain has a manifest already
    assert here.store.requests["get"] <= 9


@ordered
def test_landing_and_adoption_take_turns(sink: Sink) -> None:
    here = Adopting(sink, topic())
    item = landed(here.store, dict(here.topic.some(0, 6)))
    span = Span(partition=0, first=0, next=7)
    before = land.commit(here.chain, here.spec.landing, None, (span,), (item,))
    assert before.version == 3
    assert b'"sink"' not in before.encode()
    here.write_from(0, 3)
    here.write_from(5, 12)
    here.run()
    here.write_from(13, 18)
    here.run()
    assert here.adopted() == here.all()


def test_manifests_of_version_1_have_no_sinks_objects() -> None:
    here = Adopting(LENSES, topic())
    here.write_from(0, 18)
    here.run()
    head = here.chain.head()
    assert head is not None
    assert Manifest.decode(head.encode()) == head
    without_last = head.model_copy(update={"spans": (Span(partition=0, first=0, next=20),)}).encode()
    assert Manifest.decode(without_last.replace(b'"version": 3', b'"version": 2')).version == 2
    with pytest.raises(ValidationError, match="which version 1 does not support"):
        Manifest.decode(without_last.replace(b'"version": 3', b'"version": 1'))
    with pytest.raises(ValidationError, match="version"):
        Manifest.decode(without_last.replace(b'"version": 3', b'"version": 4'))


@every
def test_a_topic_that_lost_its_tail_and_was_written_on_stops(sink: Sink) -> None:
    """Offsets 15 to 19 are lost, and other records stand at 15 to 24: those at 15 to 19 would never be adopted."""
    here = Adopting(sink, topic())
    here.write_from(0, 18)
    here.run()
    here.topic.values[0].update({offset: b'{"n": "rewritten %d"}' % offset for offset in range(15, 25)})
    here.topic.ends[0] = 25
    here.write_from(20, 24)
    with pytest.raises(
        TopicRecreatedError, match=r"last one that was landed has offset 18.*offset 19.*cdc-lake resnapshot shop"
    ):
        here.run()
    assert (here.chain.length(), here.next) == (1, 20)


@every
def test_the_last_record_has_expired(sink: Sink) -> None:
    """It cannot be compared any more; new records are adopted."""
    here = Adopting(sink, topic())
    here.write_from(0, 18)
    here.run()
    here.topic.values[0].update({20: b'{"n": 20}', 21: b'{"n": 21}'})
    here.topic.ends[0], here.topic.begins[0] = 22, 20
    here.write_from(20, 21)
    assert here.run().records == 2
