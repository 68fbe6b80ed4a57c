"""Any split of a history into objects, repeated or late, is adopted as each record once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lake.contract.errors import ManifestGapError
from cdc_lake_tests.helpers.sink_objects import ALL_SINKS, TopicInMemory
from cdc_lake_tests.unit.jobs.adoption.adopted_topic import AdoptedTopic


@st.composite
def histories(draw: st.DrawFn) -> tuple[TopicInMemory, list[tuple[str, list[int]]]]:
    """Draw a topic with markers, and groups of record numbers (one object each) in order of arrival.

    The groups contain all records, some of them twice.
    """
    gaps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=25))
    offsets = [sum(gaps[: n + 1]) - 1 for n in range(len(gaps))]
    topic = TopicInMemory.of(offsets, offsets[-1] + draw(st.integers(1, 3)))
    cuts = sorted({0, len(offsets), *draw(st.lists(st.integers(0, len(offsets)), max_size=8))})
    groups = [list(range(first, end)) for first, end in pairwise(cuts)]
    for _ in range(draw(st.integers(0, 3))):
        first = draw(st.integers(0, len(offsets) - 1))
        groups.append(list(range(first, draw(st.integers(first + 1, len(offsets))))))
    return topic, [(f"f{n}", group) for n, group in enumerate(draw(st.permutations(groups)))]


@given(st.sampled_from(ALL_SINKS), histories(), st.data())
@settings(max_examples=80, deadline=None)
def test_every_record_is_adopted_once(
    sink: object, history: tuple[TopicInMemory, list[tuple[str, list[int]]]], data: st.DataObject
) -> None:
    topic, groups = history
    adoption = AdoptedTopic(next(candidate for candidate in ALL_SINKS if candidate is sink), topic)
    everything = adoption.all()
    if not adoption.sink.ordered:  # records of one partition among several folders
        count = data.draw(st.integers(1, 3))
        groups = [(f"{name}-{k}", group[k::count]) for name, group in groups for k in range(count) if group[k::count]]
    longest: dict[str, int] = {}
    for folder, group in groups:
        records = [everything[number] for number in group]
        # Only a restart of the connector replaces an object, possibly with fewer records. Records that are adopted
        # must not be removed; test_adopt_refusals.py tests that this is reported.
        key = f"{records[0][0]}" if adoption.sink.layout in {"confluent", "aiven"} else folder
        if longest.get(key, 0) < len(records):
            longest[key] = len(records)
            adoption.write(records, folder=folder)
        if data.draw(st.booleans()):
            try:
                adoption.run()
            except ManifestGapError:
                assert adoption.sink.ordered
            adopted = sorted(adoption.adopted())
            assert adopted == everything[: len(adopted)]
    while adoption.run().manifest is not None:
        pass
    assert sorted(adoption.adopted()) == everything
    assert adoption.next == topic.ends[0]
    assert adoption.new_objects() == []
