"""The formats of topic and raw objects, independent of each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.objects import avro_container
from cdc_lake.jobs.landing.raw_formats import LandingFormat, RawRecord, RecordFormat, Rejected
from cdc_lake_tests.helpers.avro import MemoryRegistry, framed, record

SCHEMA = record("Value", ("id", "int"), ("raw", ["null", "bytes"]))
LINE_BREAK = "the record's value contains a line break, which no JSON converter writes"
ROWS = st.lists(st.tuples(st.integers(0, 9), st.none() | st.binary(max_size=4)), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the record has no value"),
        (b"", "the record's value is empty"),
        (b'{\n"a": 1}', LINE_BREAK),
        (b'{"a": 1}\n', LINE_BREAK),
        (b'{"a": "\\n"}', None),
        (b"\r", None),
        (b"1" * 30, None),
        (b"1" * 31, "the record's value has 31 bytes, more than the 30 of landing.record_bytes"),
    ],
)
def test_json_that_cannot_be_a_line_is_rejected_with_a_reason(value: bytes | None, reason: str | None) -> None:
    found = RecordFormat(None, "json", 30).convert(value)
    assert (found.reason if isinstance(found, Rejected) else None) == reason


@pytest.mark.parametrize("landing", ["json", "avro"])
def test_bytes_that_are_no_avro_are_rejected(landing: LandingFormat) -> None:
    formats = RecordFormat(MemoryRegistry({7: SCHEMA}), landing, 1000)
    for value in (None, b"", b"{}", framed(SCHEMA, {"id": 1, "raw": None}, 8), b"x" * 1001):
        assert isinstance(formats.convert(value), Rejected), value


def converted(landing: LandingFormat, rows: Sequence[tuple[int, bytes | None]]) -> bytes:
    """Return the body of an object of these records."""
    formats = RecordFormat(MemoryRegistry({7: SCHEMA}), landing, 1000)
    found = [formats.convert(framed(SCHEMA, {"id": id_, "raw": raw})) for id_, raw in rows]
    records = [each for each in found if isinstance(each, RawRecord)]
    assert len(records) == len(found)
    return formats.join(records)


@given(ROWS)
def test_both_raw_formats_have_the_same_records(rows: list[tuple[int, bytes | None]]) -> None:
    lines = converted("json", rows).splitlines()
    body = converted("avro", rows)
    assert list(avro_container.values(body)) == lines
    assert body == converted("avro", rows), "equal records are equal objects"
    reader = fastavro.reader(BytesIO(body))
    assert [(each["id"], each["raw"]) for each in reader] == rows, "any Avro reader reads them"  # type: ignore[index,call-overload]
    assert reader.metadata["cdc_lake.schema_id"] == "7"
    assert json.loads(reader.metadata["avro.schema"])["name"] in {"Value", "shop.public.Value"}
