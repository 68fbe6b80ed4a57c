"""Object keys: formatted and parsed, sorted like offsets, and never outside of their prefix."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import hive_partitions, object_names
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
def test_a_formatted_key_is_parsed_back(name: ObjectName) -> None:
    assert ObjectName.parse(name.key) == name


@given(OFFSETS, OFFSETS)
def test_keys_sort_like_offsets(one: int, other: int) -> None:
    keys = [ObjectName("p", "t", 0, offset, offset, "json").key for offset in (one, other)]
    assert (keys[0] < keys[1]) == (one < other)


def test_manifest_keys_contain_chain_id_and_number() -> None:
    first, later = object_names.manifest_key("p", "t", 7), object_names.manifest_key("p", "t", 7, "0ab9")
    assert later == "raw/p/t/_manifests/chain=0ab9/00000000000000000007.json"
    assert [object_names.manifest_number(key) for key in (first, later)] == [7, 7]
    for other in (f"{first}-5b1c9e54", f"{object_names.manifest_prefix('p', 't')}x.json", "raw/p/t/partition=0/x.json"):
        assert object_names.manifest_number(other) is None


@pytest.mark.parametrize(("chain", "epoch"), [("", 0), ("0ab9", 0), ("", 3), ("0ab9", 3)])
def test_chain_and_epoch_are_part_of_the_key(chain: str, epoch: int) -> None:
    name = ObjectName("p", "t", 1, 2, 3, "json", epoch, chain)
    assert ObjectName.parse(name.key) == name


@given(OFFSETS, OFFSETS)
def test_manifest_keys_sort_like_numbers(one: int, other: int) -> None:
    assert (object_names.manifest_key("p", "t", one) < object_names.manifest_key("p", "t", other)) == (one < other)


@given(OBJECTS, st.data())
def test_a_key_with_one_changed_character_is_invalid_or_of_another_object(
    name: ObjectName, data: st.DataObject
) -> None:
    key = name.key
    position = data.draw(st.integers(0, len(key) - 1))
    other = key[:position] + data.draw(st.characters(codec="utf-8")) + key[position + 1 :]
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
def test_invalid_keys_parse_to_none(key: str) -> None:
    assert ObjectName.parse(key) is None


def test_a_key_partitioned_by_a_field_is_parsed() -> None:
    key = "raw/p/t/customer_id=VINET/partition=3/t+3+00000000000000000007+00000000000000000009.json"
    name = ObjectName("p", "t", 3, 7, 9, "json", fields=("customer_id=VINET",))
    assert ObjectName.parse(key) == name
    assert name.values() == {"customer_id": "VINET"}


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("Peru", "country=Peru"),
        (None, "country=__HIVE_DEFAULT_PARTITION__"),
        ("C/D: x=1 50%", "country=C%2FD%3A x%3D1 50%25"),
        ("Côte d'Ivoire\n", "country=Côte d%27Ivoire%0A"),
        ('\\[^{?*#}]"\x7f', "country=%5C%5B%5E%7B%3F%2A%23}%5D%22%7F"),
    ],
)
def test_the_folder_of_a_value_is_that_of_hive(value: str | None, folder: str) -> None:
    assert hive_partitions.folder("country", value) == folder
    for epoch, chain in ((0, ""), (2, ""), (0, "0ab9"), (2, "0ab9")):
        name = ObjectName("p", "t", 3, 7, 9, "parquet", epoch, chain, (folder, "state_province=a"))
        assert ObjectName.parse(name.key) == name
        assert name.values() == {"country": value, "state_province": "a"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([None, "x"], None),
        (["a" * 240, "b"], None),
        (["", "b"], "the partition column country is '', which readers return as NULL"),
        (["__HIVE_DEFAULT_PARTITION__", "b"], "readers return as NULL"),
        (["\\N", "b"], "readers return as NULL"),
        (["ä" * 124, "b"], "folders have 263 bytes"),
        (["a" * 200, "b" * 200], "folders have 414 bytes"),
    ],
)
def test_a_value_that_no_folder_can_have_is_rejected(values: list[str | None], reason: str | None) -> None:
    found = hive_partitions.fault(("country", "state"), values)
    assert (found is None) if reason is None else (found is not None and reason in found)


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
def test_parts_that_would_leave_the_prefix_are_rejected(prefix: Callable[[str], str], part: str) -> None:
    with pytest.raises(ContractError, match="in an object's key: only letters"):
        prefix(part)


def test_no_prefix_of_a_pipeline_contains_that_of_another() -> None:
    """A reset deletes by prefix."""
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
