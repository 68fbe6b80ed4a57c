"""Unlisted objects are deleted: those that a manifest covers, and those after the chain's end behind a fence."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.jobs.landing import unlisted_objects
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE, TOPIC, landed, manifest


def key(first: int, last: int, epoch: int = 0, partition: int = 0, fields: tuple[str, ...] = ()) -> str:
    """Return the key of an object."""
    return ObjectName(PIPELINE, TOPIC, partition, first, last, raw_objects.EXTENSION, epoch, fields=fields).key


@dataclass
class Topic:
    """A chain with one manifest of offsets 0 to 9, and the manifests after which a fence was committed."""

    store: MemoryStore = field(default_factory=MemoryStore)
    fenced: list[int] = field(default_factory=list)
    fails: bool = False
    """Whether the landing ends right after the fence."""

    def __post_init__(self) -> None:
        item = landed(self.store, dict.fromkeys(range(10), b"{}"))
        self.head = manifest(1, {0: (0, 10)}, objects=(item,))

    def delete(self, *columns: str) -> int:
        """Delete the unlisted objects of partitions 0 and 1."""

        def fence(head: Manifest | None) -> None:
            self.fenced.append(0 if head is None else head.number)
            if self.fails:
                raise KeyboardInterrupt

        return unlisted_objects.delete(Chain(self.store, PIPELINE, TOPIC, ""), (0, 1), self.head, fence, columns)


def test_an_object_of_a_lost_race_is_deleted() -> None:
    topic = Topic()
    topic.store.write(key(0, 4), b"")
    assert (topic.delete(), topic.fenced) == (1, [])
    assert set(topic.store.objects) == {key(0, 9)}


def test_an_object_after_the_end_is_deleted_behind_a_fence() -> None:
    topic = Topic()
    topic.store.write(key(10, 12), b"")
    topic.store.write(key(0, 3, partition=1), b"")
    assert (topic.delete(), topic.fenced) == (2, [1])
    assert set(topic.store.objects) == {key(0, 9)}


def test_objects_that_the_next_scan_does_not_find_are_deleted_before_the_fence() -> None:
    topic = Topic(fails=True)
    topic.store.write(key(0, 4), b"")
    topic.store.write(key(10, 12), b"")
    with pytest.raises(KeyboardInterrupt):
        topic.delete()
    assert set(topic.store.objects) == {key(0, 9), key(10, 12)}


def test_other_epochs_are_left_alone_and_nothing_is_committed_without_unlisted_objects() -> None:
    topic = Topic()
    topic.store.write(key(0, 3, epoch=1), b"")
    assert (topic.delete(), topic.fenced) == (0, [])
    assert key(0, 3, epoch=1) in topic.store.objects


def test_objects_of_all_values_of_the_partition_columns_are_found() -> None:
    topic = Topic()
    places = [("country=Peru", "state=%2F"), ("country=Peru", "state=b"), ("country=Chile", "state=a")]
    left = [key(3, 4, fields=places[0]), *(key(10, 12, partition=1, fields=place) for place in places[1:])]
    other = [key(10, 12, epoch=1, fields=places[0]), key(10, 12, fields=("district=a", "state=a"))]
    for each in (*left, *other):
        topic.store.write(each, b"")
    topic.store.forget_requests()
    assert (topic.delete("country", "state"), topic.fenced) == (3, [1])
    assert set(topic.store.objects) == {key(0, 9), *other}
    # One listing of the countries, one of each country's states, and two topic partitions in each of three folders.
    assert topic.store.requests["list"] == 1 + 2 + 6
