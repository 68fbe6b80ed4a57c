"""Keys: made and read back, sorted as offsets are, and never outside of their prefix."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.object_names import ObjectName

PARTS = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=40).filter(
    lambda part: part not in {".", ".."}
)
OFFSETS = st.integers(0, 2**63 - 1)
OBJECTS = st.builds(
    ObjectName, PARTS, PARTS, st.integers(0, 100_000), OFFSETS, OFFSETS, st.sampled_from(["json", "json.gz", "parquet"])
)
UNSAFE = ["", ".", "..", "a/b", "../lake", "a b", "a\n", "\n", "ä", "a+b", "a=b", "%2e%2e", "a\x00", "a\\b"]


@given(OBJECTS)
def test_an_objects_key_reads_back(name: ObjectName) -> None:
    assert ObjectName.parse(name.key) == name


@given(OFFSETS, OFFSETS)
def test_keys_sort_as_offsets_do(one: int, other: int) -> None:
    keys = [ObjectName("p", "t", 0, offset, offset, "json").key for offset in (one, other)]
    assert (keys[0] < keys[1]) == (one < other)


def test_manifests_of_a_chain_are_numbered_below_its_id() -> None:
    first, later = object_names.manifest_key("p", "t", 7), object_names.manifest_key("p", "t", 7, "0ab9")
    assert later == "raw/p/t/_manifests/chain=0ab9/00000000000000000007.json"
    assert [object_names.manifest_number(key) for key in (first, later)] == [7, 7]
    for other in (f"{first}-5b1c9e54", f"{object_names.manifest_prefix('p', 't')}x.json", "raw/p/t/partition=0/x.json"):
        assert object_names.manifest_number(other) is None


@pytest.mark.parametrize(("chain", "epoch"), [("", 0), ("0ab9", 0), ("", 3), ("0ab9", 3)])
def test_an_objects_chain_and_epoch_are_part_of_its_name(chain: str, epoch: int) -> None:
    name = ObjectName("p", "t", 1, 2, 3, "json", epoch, chain)
    assert ObjectName.parse(name.key) == name


@given(OFFSETS, OFFSETS)
def test_manifest_keys_sort_as_numbers_do(one: int, other: int) -> None:
    assert (object_names.manifest_key("p", "t", one) < object_names.manifest_key("p", "t", other)) == (one < other)


@given(OBJECTS, st.data())
def test_a_key_with_one_character_changed_is_another_objects_or_none(name: ObjectName, data: st.DataObject) -> None:
    key = name.key
    at = data.draw(st.integers(0, len(key) - 1))
    other = key[:at] + data.draw(st.characters(codec="utf-8")) + key[at + 1 :]
    found = ObjectName.parse(other)
    assert found is None or found.key == other


@pytest.mark.parametrize(
    "key",
    [
        "",
        "raw/p/t/_manifests/00000000000000000001.json",
        "raw/p/t/partition=0/t+1+00000000000000000000+00000000000000000009.json",
        "raw/p/t/partition=0/u+0+00000000000000000000+00000000000000000009.json",
        "raw/p/t/partition=00/t+00+00000000000000000000+00000000000000000009.json",
        "raw/p/t/partition=0/t+0+0000000000000000000+00000000000000000009.json",
        "raw/p/t/partition=0/t+0+00000000000000000000+00000000000000000009.json\n",
        "raw/p/t/partition=0/t+0+00000000000000000000+00000000000000000009.json-1b671a64-40d5",
    ],
)
def test_what_is_no_object_is_none(key: str) -> None:
    assert ObjectName.parse(key) is None


def test_an_object_partitioned_by_a_field_is_read_too() -> None:
    key = "raw/p/t/customer_id=VINET/partition=3/t+3+00000000000000000007+00000000000000000009.json"
    assert ObjectName.parse(key) == ObjectName("p", "t", 3, 7, 9, "json")


@pytest.mark.parametrize("part", UNSAFE)
@pytest.mark.parametrize(
    "prefix",
    [
        object_names.pipeline_prefix,
        object_names.dead_letter_prefix,
        object_names.closed_letter_prefix,
        object_names.lake_prefix,
        lambda part: object_names.topic_prefix("p", part),
        lambda part: object_names.topic_prefix(part, "t"),
        lambda part: object_names.manifest_key("p", part, 1),
        lambda part: object_names.schema_prefix("p", part),
        lambda part: object_names.lake_prefix("p", part),
        lambda part: object_names.lease_key("p", part),
        lambda part: object_names.lease_key(part, "t"),
        lambda part: ObjectName("p", part, 0, 0, 0, "json").key,
    ],
)
def test_no_part_leaves_its_prefix(prefix: Callable[[str], str], part: str) -> None:
    with pytest.raises(ContractError, match="cannot be part of an object's key"):
        prefix(part)


def test_prefixes_do_not_hold_each_other() -> None:
    """A reset deletes by prefix: one pipeline's must not be the beginning of another's."""
    for prefix in (
        object_names.pipeline_prefix,
        object_names.dead_letter_prefix,
        object_names.closed_letter_prefix,
        object_names.lake_prefix,
    ):
        assert not prefix("shop2").startswith(prefix("shop"))
    assert not object_names.closed_letter_prefix("shop").startswith(object_names.dead_letter_prefix("shop"))
    assert not object_names.lease_key("shop", "orders").startswith(
        (object_names.lake_prefix("shop"), object_names.pipeline_prefix("shop"))
    )
