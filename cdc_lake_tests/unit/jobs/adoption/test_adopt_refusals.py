"""Errors when landing objects that a sink connector wrote (adoption).

The objects are damaged, contradict the topic, have unknown names, or leave a gap that cannot be filled.
"""

from __future__ import annotations

import pytest

from cdc_lake.contract.errors import (
    ContractError,
    ForeignObjectError,
    ObjectConflictError,
    ObjectDamagedError,
    OffsetsExpiredError,
    TopicRecreatedError,
)
from cdc_lake.jobs.adoption.sink import Sink
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
from cdc_lake_tests.unit.jobs.adoption.adopted_topic import (
    TOPIC,
    AdoptedTopic,
    each_ordered_sink,
    each_sink,
    name_of,
    topic,
)


@each_sink
def test_an_object_rewritten_with_fewer_or_other_records_is_damaged(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    key = adoption.write_from(0, 8)
    adoption.run()
    adoption.topic.values[0][3] = b'{"n": "another"}'
    adoption.write_from(0, 8)
    with pytest.raises(ObjectDamagedError, match="The sink connector may have rewritten the object"):
        adoption.adopted()
    adoption.store.write(key, adoption.store.objects[key].body[:0])
    with pytest.raises(ObjectDamagedError):
        adoption.adopted()


@each_sink
def test_different_records_at_one_offset_are_rejected(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 8, folder="a")
    adoption.topic.values[0][6] = b'{"n": "another"}'
    adoption.write_from(5, 12, folder="b")
    with pytest.raises(
        ObjectConflictError, match=r"different records at offset 6|not the record that .* has at offset 6"
    ):
        adoption.run()
    assert adoption.chain.head() is None


def test_invalid_combinations_of_layout_and_envelope_are_rejected() -> None:
    with pytest.raises(ContractError, match=r"'store.envelope'=true"):
        Sink("lenses_by_field", "sink/")
    with pytest.raises(ContractError, match="confluent sink writes no envelope"):
        Sink("confluent", "sink/", envelope=True)


@each_sink
def test_missing_records_that_have_expired_are_rejected(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.topic.begins[0] = 12
    adoption.write_from(5, 18)
    with pytest.raises(OffsetsExpiredError, match="some of these offsets have expired in the topic"):
        adoption.run()
    assert adoption.chain.head() is None


@each_ordered_sink
def test_a_gap_that_cannot_be_filled_is_reported_while_other_partitions_advance(sink: Sink) -> None:
    records = {partition: {offset: b"%d" % offset for offset in range(6)} for partition in (0, 1)}
    adoption = AdoptedTopic(sink, TopicInMemory(records, {0: 6, 1: 6}, {0: 4, 1: 0}))
    adoption.write_from(3, 5, partition=0)
    adoption.write_from(0, 5, partition=1)
    with pytest.raises(OffsetsExpiredError, match=r"partition 0: .*manifest 1 contains the records that"):
        adoption.run()
    assert (adoption.adopted(0), adoption.adopted(1)) == ([], adoption.all(1))


@each_sink
def test_unknown_objects_below_the_topics_prefix_are_rejected(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.store.write(object_key(sink, "shop.public.customers", 0, [(0, b"")], "f"), b"not read")
    adoption.write_from(0, 18)
    adoption.run()
    assert adoption.adopted() == adoption.all()
    folder = adoption.write_from(0, 3, partition=0).rpartition("/")[0]
    adoption.topic.ends[0] = 21
    adoption.topic.values[0][20] = b"21"
    stray = f"{folder}/{TOPIC}-0-0000000099.tmp"
    adoption.store.write(stray, b"")
    with pytest.raises(ForeignObjectError, match=r"0000000099\.tmp"):
        adoption.run()


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT, AIVEN], ids=name_of)
def test_an_object_named_by_an_offset_without_a_record_is_rejected(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.store.write(object_key(sink, TOPIC, 0, [(4, b"")]), adoption.store.objects[adoption.write_from(0, 3)].body)
    with pytest.raises(ObjectConflictError, match=r"named by offset 4.* has no committed record"):
        adoption.run()


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT, AIVEN], ids=name_of)
@pytest.mark.parametrize("offsets", [[0, 1, 2, 3, 4, 5, 6], [0, 1, 3, 5, 6]], ids=["one too many", "one left out"])
def test_lines_that_are_not_the_topics_records_are_rejected(sink: Sink, offsets: list[int]) -> None:
    """A sink that writes aborted records, or omits one; counting lines would still give each an offset."""
    adoption = AdoptedTopic(sink, topic())
    lines = [(offset, b'{"n": %d}' % offset) for offset in offsets]
    adoption.write(lines)
    adoption.write_from(7, 18)
    with pytest.raises(
        ObjectConflictError, match=r"Cannot adopt object .*: its line \d is not the record that topic .* has at offset"
    ):
        adoption.run()
    assert adoption.chain.head() is None


@pytest.mark.parametrize("sink", [LENSES, CONFLUENT, AIVEN], ids=name_of)
def test_an_equal_record_in_another_notation_is_accepted(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.topic.values[0][2] = b'{"b":1.50,"a":"\\u00df"}'
    lines = adoption.topic.records_between(0, 3)
    lines[2] = (2, '{"a": "ß", "b": 1.5}'.encode())
    adoption.write(lines)
    adoption.topic.values[0][5] = b"no JSON"
    adoption.write_from(5, 18)
    assert adoption.run().records == 16


@pytest.mark.parametrize("sink", [LENSES_ENVELOPE, BY_FIELD, AIVEN_ENVELOPE], ids=name_of)
def test_a_value_is_not_accepted_as_an_envelope(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    key = adoption.write_from(0, 3)
    other = Sink(sink.layout if sink is not BY_FIELD else "lenses", sink.prefix)
    plain = AdoptedTopic(other, topic())
    adoption.store.write(key, plain.store.objects[plain.write_from(0, 3)].body)
    with pytest.raises(ObjectDamagedError, match="has no envelope"):
        adoption.run()


@each_sink
def test_a_recreated_topic_is_rejected(sink: Sink) -> None:
    adoption = AdoptedTopic(sink, topic())
    adoption.write_from(0, 18)
    adoption.run()
    adoption.topic_id = "another"
    with pytest.raises(TopicRecreatedError):
        adoption.run()
