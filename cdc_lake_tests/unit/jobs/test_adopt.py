"""Adoption: what sink connectors wrote comes into the chain once, in order, and a gap is never passed over."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cdc_lake.contract.errors import (
    ContractError,
    ForeignObjectError,
    ManifestGapError,
    ObjectConflictError,
    ObjectDamagedError,
    OffsetsExpiredError,
    TopicRecreatedError,
)
from cdc_lake.contract.manifest import Manifest, Span
from cdc_lake.contract.position import Watermark
from cdc_lake.jobs import land
from cdc_lake.jobs.sink_listing import Sink
from cdc_lake_tests import memory_store
from cdc_lake_tests.sinks import (
    AIVEN,
    AIVEN_ENVELOPE,
    BY_FIELD,
    CONFLUENT,
    EVERY,
    LENSES,
    LENSES_ENVELOPE,
    ORDERED,
    TopicInMemory,
    named,
)
from cdc_lake_tests.unit.contract.landed import landed
from cdc_lake_tests.unit.jobs.adopting import BEAT, TOPIC, Adopting

MARKERS = {4, 9, 14, 19}


def name_of(sink: Sink) -> str:
    """A test's id."""
    return f"{sink.layout}{'-envelope' if sink.envelope else ''}"


every = pytest.mark.parametrize("sink", EVERY, ids=name_of)
ordered = pytest.mark.parametrize("sink", ORDERED, ids=name_of)


def topic() -> TopicInMemory:
    """Four transactions of four records, a marker after each."""
    return TopicInMemory.of(sorted(set(range(20)) - MARKERS), 20)


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
    assert (head.version, head.next_offsets(), head.watermark) == (2, {0: 20}, BEAT)
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
    assert head.version == 1


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


@every
def test_one_that_is_written_again_with_less_or_others_is_damage(sink: Sink) -> None:
    here = Adopting(sink, topic())
    key = here.write_from(0, 8)
    here.run()
    here.topic.values[0][3] = b'{"n": "another"}'
    here.write_from(0, 8)
    with pytest.raises(ObjectDamagedError, match="the sink connector wrote it again"):
        here.adopted()
    here.store.write(key, here.store.objects[key].body[:0])
    with pytest.raises(ObjectDamagedError):
        here.adopted()


@every
def test_different_records_at_one_offset_stop(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.write_from(0, 8, folder="a")
    here.topic.values[0][6] = b'{"n": "another"}'
    here.write_from(5, 12, folder="b")
    with pytest.raises(
        ObjectConflictError, match=r"different records at offset 6|not the record that .* has at offset 6"
    ):
        here.run()
    assert here.chain.head() is None


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


def test_by_field_without_offsets_in_the_records_is_refused() -> None:
    with pytest.raises(ContractError, match=r"'store.envelope'=true"):
        Sink("lenses_by_field", "sink/")
    with pytest.raises(ContractError, match="confluent sink writes no envelope"):
        Sink("confluent", "sink/", envelope=True)


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


@every
def test_what_the_topic_has_not_got_any_more_can_not_be_told(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.topic.begins[0] = 12
    here.write_from(5, 18)
    with pytest.raises(OffsetsExpiredError, match="the topic has not got all of these any more"):
        here.run()
    assert here.chain.head() is None


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


@ordered
def test_a_gap_that_nothing_can_fill_is_said_though_others_go_on(sink: Sink) -> None:
    records = {partition: {offset: b"%d" % offset for offset in range(6)} for partition in (0, 1)}
    here = Adopting(sink, TopicInMemory(records, {0: 6, 1: 6}, {0: 4, 1: 0}))
    here.write_from(3, 5, partition=0)
    here.write_from(0, 5, partition=1)
    with pytest.raises(OffsetsExpiredError, match=r"partition 0: .*manifest 1 has what could be adopted"):
        here.run()
    assert (here.adopted(0), here.adopted(1)) == ([], here.all(1))


@every
def test_others_objects_below_the_prefix(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.store.write(named(sink, "shop.public.customers", 0, [(0, b"")], "f"), b"not read")
    here.write_from(0, 18)
    here.run()
    assert here.adopted() == here.all()
    there = here.write_from(0, 3, partition=0).rpartition("/")[0]
    here.topic.ends[0] = 21
    here.topic.values[0][20] = b"21"
    stray = f"{there}/{TOPIC}-0-0000000099.tmp"
    here.store.write(stray, b"")
    with pytest.raises(ForeignObjectError, match=r"0000000099\.tmp"):
        here.run()


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT, AIVEN], ids=name_of)
def test_a_name_that_the_topic_contradicts_stops(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.store.write(named(sink, TOPIC, 0, [(4, b"")]), here.store.objects[here.write_from(0, 3)].body)
    with pytest.raises(ObjectConflictError, match=r"named by offset 4.* has no committed record"):
        here.run()


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT, AIVEN], ids=name_of)
@pytest.mark.parametrize("written", [[0, 1, 2, 3, 4, 5, 6], [0, 1, 3, 5, 6]], ids=["one too many", "one left out"])
def test_lines_that_are_not_the_topics_records_stop(sink: Sink, written: list[int]) -> None:
    """A sink that reads aborted records, or leaves one out: counted, all of its lines have an offset."""
    here = Adopting(sink, topic())
    lines = [(offset, b'{"n": %d}' % offset) for offset in written]
    here.write(lines)
    here.write_from(7, 18)
    with pytest.raises(
        ObjectConflictError, match=r"line \d of object .* is not the record that topic .* has at offset"
    ):
        here.run()
    assert here.chain.head() is None


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT, AIVEN], ids=name_of)
def test_a_record_may_be_spelled_otherwise(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.topic.values[0][2] = b'{"b":1.50,"a":"\\u00df"}'
    lines = here.topic.some(0, 3)
    lines[2] = (2, '{"a": "ß", "b": 1.5}'.encode())
    here.write(lines)
    here.topic.values[0][5] = b"no JSON"
    here.write_from(5, 18)
    assert here.run().records == 16


@every
def test_an_envelope_is_not_taken_for_a_value_nor_the_other_way(sink: Sink) -> None:
    here = Adopting(sink, topic())
    if sink.envelope:
        key = here.write_from(0, 3)
        other = Sink(sink.layout if sink is not BY_FIELD else "lenses", sink.prefix)
        plain = Adopting(other, topic())
        here.store.write(key, plain.store.objects[plain.write_from(0, 3)].body)
        with pytest.raises(ObjectDamagedError, match="has no envelope"):
            here.run()


@every
def test_a_topic_that_was_made_again_needs_another_prefix(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.write_from(0, 18)
    here.run()
    here.topic_id = "another"
    with pytest.raises(TopicRecreatedError):
        here.run()


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
    assert here.store.requests["list"] == 1
    assert here.store.requests["get"] <= 6


@ordered
def test_landing_and_adoption_take_turns(sink: Sink) -> None:
    here = Adopting(sink, topic())
    item = landed(here.store, dict(here.topic.some(0, 6)))
    span = Span(partition=0, first=0, next=7)
    before = land.commit(here.chain, here.spec.landing, None, (span,), (item,))
    assert before.version == 1
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
    with pytest.raises(ValidationError, match="which version 1 does not know"):
        Manifest.decode(head.encode().replace(b'"version": 2', b'"version": 1'))
    with pytest.raises(ValidationError, match="version"):
        Manifest.decode(head.encode().replace(b'"version": 2', b'"version": 3'))
