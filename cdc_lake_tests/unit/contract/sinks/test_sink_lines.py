"""Lines of sink connectors' objects: unchanged values, offsets from envelopes, and reported damage."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.sinks import sink_lines
from cdc_lake_tests.helpers.sink_objects import ALL_SINKS, written

LENSES = (
    b'{"headers":{"h1":"record1-header1","h2":1},"metadata":{"partition":1,"offset":1,"topic":"myTopic",'
    b'"timestamp":10001},"value":{"name":"sam","title":"mr","salary":100.43},"key":{"name":"sam"}}'
)
AIVEN = b' { "key": "user1", "value": {"name": "John"}, "offset": 1232155, "timestamp":"2020-01-01T00:00:01Z" }'


def test_documented_envelopes_are_parsed() -> None:
    assert sink_lines.lines(LENSES + b"\n", "k", "lenses_envelope", False) == [
        (1, b'{"name":"sam","title":"mr","salary":100.43}')
    ]
    assert sink_lines.lines(AIVEN, "k", "aiven_envelope", False) == [(1232155, b'{"name": "John"}')]


def test_the_last_line_may_have_no_line_feed() -> None:
    for body in (b"1\n2\n", b"1\n2"):
        assert sink_lines.lines(body, "k", "value", False) == [(None, b"1"), (None, b"2")]
    assert sink_lines.lines(b"1\n\n", "k", "value", False) == [(None, b"1"), (None, b"")]
    assert sink_lines.lines(b"", "k", "value", False) == []


def test_values_are_returned_byte_for_byte() -> None:
    value = b'{"a" : 1.50, "b": 12345678901234567890123, "c": "\\u00e9\xc3\xa9", "d": 1e400}'
    body = b'{"offset": 5 , "value" :  %s }\n' % value
    assert sink_lines.lines(body, "k", "aiven_envelope", False) == [(5, value)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(ALL_SINKS), st.lists(json_values, min_size=1, max_size=5), st.booleans())
def test_lines_of_every_sink_are_read_back(sink: object, values: list[object], ascii_only: bool) -> None:
    config = next(candidate for candidate in ALL_SINKS if candidate is sink)
    records = [(7 * n, json.dumps(value, ensure_ascii=ascii_only).encode()) for n, value in enumerate(values)]
    body = written(config, "t", 0, records)
    found = sink_lines.lines(body, "k", config.framing, config.layout == "aiven")
    assert [value for _, value in found] == [value for _, value in records]
    if config.envelope:
        assert [offset for offset, _ in found] == [offset for offset, _ in records]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"offset": 1}',
        b'{"value": 1}',
        b'{"value": 1, "offset": "1"}',
        b'{"value": 1, "offset": true}',
        b'{"value": 1, "offset": -1}',
        b'{"value": 1, "offset": 1} x',
        b'{"value": 1, "offset": 1',
        b'{"value": "\xff", "offset": 1}',
        b'{"value" 1, "offset": 1}',
        b"",
    ],
)
def test_an_invalid_envelope_is_reported_with_its_line(line: bytes) -> None:
    with pytest.raises(ObjectDamagedError, match=r"object some/key .* in line 2"):
        sink_lines.lines(b'{"value":1,"offset":0}\n' + line + b"\n", "some/key", "aiven_envelope", False)


@pytest.mark.parametrize("body", [b"plain", gzip.compress(b"some text", mtime=0)[:-9]], ids=["plain", "cut off"])
def test_incomplete_gzip_is_reported(body: bytes) -> None:
    with pytest.raises(ObjectDamagedError, match=r"object k .* is not a complete gzip file"):
        sink_lines.lines(body, "k", "value", True)
