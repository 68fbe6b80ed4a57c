"""Dividing a topic's ranges among tasks: each offset is in one part, and parts are about equal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.jobs.landing import topic_reader

RANGES = st.dictionaries(
    st.integers(0, 5), st.tuples(st.integers(0, 1000), st.integers(0, 5000)).map(lambda each: (each[0], sum(each)))
).filter(lambda ranges: any(first < end for first, end in ranges.values()))


@given(ranges=RANGES, parts=st.integers(1, 20))
def test_each_offset_is_in_one_part(ranges: dict[int, tuple[int, int]], parts: int) -> None:
    found = topic_reader.divided(ranges, parts)
    offsets = [(partition, offset) for part in found for partition, each in part.items() for offset in range(*each)]
    assert offsets == [(partition, offset) for partition, each in ranges.items() for offset in range(*each)]
    assert all(len(part) == 1 for part in found)
    lengths = [end - first for part in found for first, end in part.values()]
    assert min(lengths) > 0
    assert max(lengths) <= 2 * len(offsets) / parts + 1
