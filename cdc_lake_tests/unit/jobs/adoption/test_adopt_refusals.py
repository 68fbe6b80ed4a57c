"""What adoption refuses: damage, lines and names that the topic contradicts, objects of somebody else, lasting gaps."""

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
from cdc_lake.jobs.adoption.listing import Sink
from cdc_lake_tests.sink_objects import (
    AIVEN,
    BY_FIELD,
    CONFLUENT,
    LENSES,
    TopicInMemory,
    named,
)
from cdc_lake_tests.unit.jobs.adoption.adopting import TOPIC, Adopting, every, name_of, ordered, topic


@every
def test_one_that_is_written_again_with_less_or_others_is_damage(sink: Sink) -> None:
    here = Adopting(sink, topic())
    key = here.write_from(0, 8)
    here.run()
    here.topic.values[0][3] = b'{"n": "another"}'
    here.write_from(0, 8)
    with pytest.raises(ObjectDamagedError, match="the sink connector rewrote it"):
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


def test_by_field_without_offsets_in_the_records_is_refused() -> None:
    with pytest.raises(ContractError, match=r"'store.envelope'=true"):
        Sink("lenses_by_field", "sink/")
    with pytest.raises(ContractError, match="confluent sink writes no envelope"):
        Sink("confluent", "sink/", envelope=True)


@every
def test_what_the_topic_has_not_got_any_more_can_not_be_told(sink: Sink) -> None:
    here = Adopting(sink, topic())
    here.topic.begins[0] = 12
    here.write_from(5, 18)
    with pytest.raises(OffsetsExpiredError, match="the topic has not got all of these any more"):
        here.run()
    assert here.chain.head() is None


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
