"""Lines of sink connectors' objects: values to the byte, offsets from envelopes, and damage that is said."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.sinks import sink_lines
from cdc_lake_tests.sink_objects import EVERY, written

LENSES = (
    b'{"headers":{"h1":"record1-header1","h2":1},"metadata":{"partition":1,"offset":1,"topic":"myTopic",'
    b'"timestamp":10001},"value":{"name":"sam","title":"mr","salary":100.43},"key":{"name":"sam"}}'
)
AIVEN = b' { "key": "user1", "value": {"name": "John"}, "offset": 1232155, "timestamp":"2020-01-01T00:00:01Z" }'


def test_envelopes_as_the_vendors_document_them() -> None:
    assert sink_lines.lines(LENSES + b"\n", "k", "lenses_envelope", False) == [
        (1, b'{"name":"sam","title":"mr","salary":100.43}')
    ]
    assert sink_lines.lines(AIVEN, "k", "aiven_envelope", False) == [(1232155, b'{"name": "John"}')]


def test_the_last_line_may_lack_its_line_feed() -> None:
    for body in (b"1\n2\n", b"1\n2"):
        assert sink_lines.lines(body, "k", "value", False) == [(None, b"1"), (None, b"2")]
    assert sink_lines.lines(b"1\n\n", "k", "value", False) == [(None, b"1"), (None, b"")]
    assert sink_lines.lines(b"", "k", "value", False) == []


def test_values_keep_their_spelling() -> None:
    value = b'{"a" : 1.50, "b": 12345678901234567890123, "c": "\\u00e9\xc3\xa9", "d": 1e400}'
    body = b'{"offset": 5 , "value" :  %s }\n' % value
    assert sink_lines.lines(body, "k", "aiven_envelope", False) == [(5, value)]


texts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(EVERY), st.lists(texts, min_size=1, max_size=5), st.booleans())
def test_what_is_written_is_read(sink: object, values: list[object], ascii_only: bool) -> None:
    each = next(one for one in EVERY if one is sink)
    records = [(7 * n, json.dumps(value, ensure_ascii=ascii_only).encode()) for n, value in enumerate(values)]
    body = written(each, "t", 0, records)
    found = sink_lines.lines(body, "k", each.framing, each.layout == "aiven")
    assert [value for _, value in found] == [value for _, value in records]
    if each.envelope:
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
def test_what_is_no_envelope_is_named(line: bytes) -> None:
    with pytest.raises(ObjectDamagedError, match=r"object some/key .* in line 2"):
        sink_lines.lines(b'{"value":1,"offset":0}\n' + line + b"\n", "some/key", "aiven_envelope", False)


@pytest.mark.parametrize("body", [b"plain", gzip.compress(b"some text", mtime=0)[:-9]], ids=["plain", "cut off"])
def test_what_is_no_whole_gzip_is_named(body: bytes) -> None:
    with pytest.raises(ObjectDamagedError, match=r"object k .* is not whole gzip"):
        sink_lines.lines(body, "k", "value", True)
