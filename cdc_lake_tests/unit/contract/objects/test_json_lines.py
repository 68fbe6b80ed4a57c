"""Raw objects: framed without loss, and verified byte for byte when they are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.objects import json_lines
from cdc_lake.contract.objects.manifest import LandedObject
from cdc_lake_tests.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import landed

VALUES = st.binary(min_size=1, max_size=30).filter(lambda value: b"\n" not in value)
RECORDS = {3: b'{"a": 1}', 4: b'{"a": "\xe2\x80\xa8"}', 9: b"not json at all\r"}


@given(st.dictionaries(st.integers(0, 500), VALUES, min_size=1))
def test_what_is_framed_is_read_back(records: dict[int, bytes]) -> None:
    store = MemoryStore()
    item = landed(store, records)
    assert list(json_lines.records(store, item)) == sorted(records.items())


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the record has no value"),
        (b"", "the record's value is empty"),
        (b'{\n"a": 1}', "the record's value contains a line break, which no JSON converter writes"),
        (b'{"a": 1}\n', "the record's value contains a line break, which no JSON converter writes"),
        (b'{"a": "\\n"}', None),
        (b"\r", None),
        (b"1" * 30, None),
        (b"1" * 31, "the record's value has 31 bytes, more than the 30 of landing.record_bytes"),
    ],
)
def test_what_cannot_be_a_line_is_told(value: bytes | None, reason: str | None) -> None:
    assert json_lines.rejection_reason(value, 30) == reason


def test_a_missing_object_is_said() -> None:
    store = MemoryStore()
    item = landed(store, RECORDS)
    store.delete([item.key])
    with pytest.raises(ObjectDamagedError, match=r"is missing, though its manifest lists it\. Nothing was applied"):
        json_lines.records(store, item)


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body[:0],
        lambda body: body[:-1],
        lambda body: body + b"x\n",
        lambda body: body.replace(b"1", b"2"),
        lambda body: body[::-1],
    ],
    ids=["emptied", "cut", "grown", "changed", "reversed"],
)
def test_a_damaged_object_is_said(damage: Callable[[bytes], bytes]) -> None:
    store = MemoryStore()
    item = landed(store, RECORDS)
    store.write(item.key, damage(store.objects[item.key].body))
    with pytest.raises(ObjectDamagedError, match=r"not the content of \d+ bytes that its manifest describes"):
        json_lines.records(store, item)


def test_an_object_with_another_number_of_records_is_said() -> None:
    store = MemoryStore()
    item = landed(store, RECORDS)
    more = LandedObject.model_validate({**item.model_dump(), "records": 4, "runs": ((3, 3), (9, 1))})
    with pytest.raises(ObjectDamagedError, match="contains 3 records, its manifest counts 4"):
        json_lines.records(store, more)
