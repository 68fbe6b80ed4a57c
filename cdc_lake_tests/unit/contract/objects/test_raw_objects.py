"""Raw objects: JSON lines without loss, verified against their manifest when they are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.manifest import LandedObject
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import landed

VALUES = st.binary(min_size=1, max_size=30).filter(lambda value: b"\n" not in value)
RECORDS = {3: b'{"a": 1}', 4: b'{"a": "\xe2\x80\xa8"}', 9: b"not json at all\r"}


@given(st.dictionaries(st.integers(0, 500), VALUES, min_size=1))
def test_written_records_are_read_back(records: dict[int, bytes]) -> None:
    store = MemoryStore()
    item = landed(store, records)
    assert list(raw_objects.records(store, item)) == sorted(records.items())


def test_a_missing_object_is_reported() -> None:
    store = MemoryStore()
    item = landed(store, RECORDS)
    store.delete([item.key])
    with pytest.raises(ObjectDamagedError, match=r"is missing, though its manifest lists it\. Nothing was applied"):
        raw_objects.records(store, item)


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda body: body[:0], r"has 0 bytes, but its manifest lists \d+\."),
        (lambda body: body[:-1], r"has \d+ bytes, but its manifest lists \d+\."),
        (lambda body: body + b"x\n", r"has \d+ bytes, but its manifest lists \d+\."),
        (lambda body: body.replace(b"1", b"2"), "its SHA-256 differs from the one in its manifest"),
        (lambda body: body[::-1], "its SHA-256 differs from the one in its manifest"),
    ],
    ids=["emptied", "cut", "grown", "changed", "reversed"],
)
def test_a_damaged_object_is_reported(damage: Callable[[bytes], bytes], cause: str) -> None:
    store = MemoryStore()
    item = landed(store, RECORDS)
    store.write(item.key, damage(store.objects[item.key].body))
    with pytest.raises(ObjectDamagedError, match=cause):
        raw_objects.records(store, item)


def test_an_object_with_another_number_of_records_is_reported() -> None:
    store = MemoryStore()
    item = landed(store, RECORDS)
    more = LandedObject.model_validate({**item.model_dump(), "records": 4, "runs": ((3, 3), (9, 1))})
    with pytest.raises(ObjectDamagedError, match="contains 3 records, but its manifest lists 4"):
        raw_objects.records(store, more)
