"""Epochs: their objects, and the offsets at which a chain may continue in a new epoch."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lake.contract.errors import ManifestGapError, ObjectDamagedError, RaceLostError, SourceBrokenError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.source.epochs import Break, Completion, Epoch, Epochs, Join, Joined, Start
from cdc_lake_tests.helpers.memory_store import MemoryStore

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TOPIC = "shop.sales.orders"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def epoch(number: int, starts: dict[str, Start] | None = None) -> Epoch:
    return Epoch(
        number=number,
        pipeline="shop",
        reason="the slot was lost",
        began_at=NOW,
        system_identifier="7",
        timeline=1,
        slot="cdc_lake_shop",
        lsn=100,
        starts=starts or {},
    )


def manifest(
    number: int, epoch: int, first: int, after: int, topic_id: str = "a", opens: str | None = None
) -> Manifest:
    return Manifest(
        number=number,
        attempt=f"attempt {number}",
        pipeline="shop",
        topic=TOPIC,
        topic_id=topic_id,
        epoch=epoch,
        opens=opens,
        spans=(Span(partition=0, first=first, next=after),),
        objects=(),
        committed_at=NOW,
    )


def test_the_newest_epoch_is_the_current_one(store: MemoryStore) -> None:
    epochs = Epochs(store, "shop")
    assert epochs.current() is None
    for number in (0, 1, 10):
        epochs.begin(epoch(number))
        epochs.complete(number, Completion(snapshot_lsn=5, completed_at=NOW))
    current = epochs.current()
    assert current is not None
    assert current.number == 10
    assert epochs.completion(10) == Completion(snapshot_lsn=5, completed_at=NOW)
    assert epochs.completion(2) is None


def test_an_epoch_has_the_tables_that_were_added_during_it(store: MemoryStore) -> None:
    epochs = Epochs(store, "shop")
    for number in (1, 2):
        epochs.begin(epoch(number, {TOPIC: Start(topic_id="a", offsets={0: 0})}))
    joins = {
        name: Join(
            topic=f"shop.sales.{name}", start=Start(topic_id=name, offsets={0: 3}), notifications={0: 9}, began_at=NOW
        )
        for name in ("items", "stores")
    }
    for name, join in joins.items():
        epochs.join(2, name, join)
    epochs.complete_join(2, "items", Joined(completed_at=NOW))
    assert epochs.read(1).joins == {}
    found = epochs.read(2)
    assert found.joins == {join.topic: join for join in joins.values()}
    assert found.starts.keys() == {TOPIC, *found.joins}
    assert found.starts["shop.sales.items"] == joins["items"].start
    assert found.joining == {"shop.sales.stores"}
    assert [found.contains(topic) for topic in (TOPIC, "shop.sales.items", "shop.sales.stores", "other")] == [
        True,
        True,
        False,
        False,
    ]
    # A second attempt keeps the first one's offsets.
    epochs.join(2, "stores", joins["items"].model_copy(update={"topic": "shop.sales.stores"}))
    assert epochs.read(2).joins["shop.sales.stores"] == joins["stores"]


def test_a_second_run_cannot_begin_the_same_epoch(store: MemoryStore) -> None:
    Epochs(store, "shop").begin(epoch(1))
    with pytest.raises(RaceLostError, match="epoch 1 of pipeline shop: another run began it"):
        Epochs(store, "shop").begin(epoch(1))


def test_an_epoch_is_begun_if_only_the_response_was_lost(store: MemoryStore) -> None:
    store.lose_answers()
    mine = epoch(1)
    assert Epochs(store, "shop").begin(mine) == mine


def test_a_broken_epoch_is_reported_until_the_next_begins(store: MemoryStore) -> None:
    epochs = Epochs(store, "shop")
    epochs.require_whole()
    epochs.begin(epoch(0))
    epochs.require_whole()
    epochs.mark_broken(0, Break(faults=("slot cdc_lake_shop is gone",), found_at=NOW))
    epochs.mark_broken(0, Break(faults=("something else",), found_at=NOW))
    with pytest.raises(SourceBrokenError, match=r"slot cdc_lake_shop is gone.*cdc-lake resnapshot shop"):
        epochs.require_whole()
    epochs.begin(epoch(1))
    epochs.require_whole()


def test_a_damaged_epoch_is_reported(store: MemoryStore) -> None:
    store.write("raw/shop/_epochs/000003.json", b"{}")
    with pytest.raises(ObjectDamagedError, match=r"000003\.json is damaged"):
        Epochs(store, "shop").current()
    with pytest.raises(ObjectDamagedError, match="Cannot read epoch 2 of pipeline shop"):
        Epochs(store, "shop").read(2)


@pytest.mark.parametrize("jump", [False, True], ids=["same_offset", "other_offset"])
def test_a_chain_continues_at_the_start_of_the_epoch(store: MemoryStore, jump: bool) -> None:
    start, topic_id = (3, "b") if jump else (10, "a")
    Epochs(store, "shop").begin(epoch(1, {TOPIC: Start(topic_id=topic_id, offsets={0: start}, jump="why")}))
    chain = Chain(store, "shop", TOPIC)
    chain.append(manifest(1, 0, 0, 10))
    chain.append(manifest(2, 1, start, start, topic_id, opens="the slot was lost"))
    chain.append(manifest(3, 1, start, start + 5, topic_id))
    assert [item.epoch for item in chain.since(0)] == [0, 1, 1]
    assert [item.number for item in chain.since(1)] == [2, 3]


def test_an_empty_chain_may_begin_with_a_later_epoch(store: MemoryStore) -> None:
    Epochs(store, "shop").begin(epoch(2, {TOPIC: Start(topic_id="b", offsets={0: 7})}))
    chain = Chain(store, "shop", TOPIC)
    chain.append(manifest(1, 2, 7, 7, "b", opens="why"))
    assert len(list(chain.since(0))) == 1


@pytest.mark.parametrize(
    ("invalid", "cause"),
    [
        (manifest(2, 1, 10, 12), r"but manifest 1 belongs to epoch 0\. The manifest that opens epoch 1 is missing"),
        (
            manifest(2, 1, 9, 9, opens="elsewhere than the epoch"),
            "opens epoch 1 at partition 0 offset 9; the epoch starts at partition 0 offset 10",
        ),
        (
            manifest(2, 1, 10, 10, "c", opens="another topic than the epoch's"),
            "opens epoch 1 with topic id c; the epoch starts with topic id a",
        ),
        (manifest(2, 0, 10, 10, opens="the same epoch"), "opens epoch 0, but manifest 1 belongs to epoch 0"),
        (manifest(2, 2, 10, 10, opens="no start"), "opens epoch 2, but no first offsets of topic"),
        (manifest(2, 0, 12, 14), "partition 0 starts at offset 12 in manifest 2, but should start at 10"),
    ],
    ids=["not_opened", "other_offset", "other_topic", "same_epoch", "no_start", "gap"],
)
def test_a_chain_continues_at_no_other_offset(store: MemoryStore, invalid: Manifest, cause: str) -> None:
    for number in (0, 1):
        Epochs(store, "shop").begin(epoch(number, {TOPIC: Start(topic_id="a", offsets={0: 10})}))
    Epochs(store, "shop").begin(epoch(2))
    chain = Chain(store, "shop", TOPIC)
    chain.append(manifest(1, 0, 0, 10))
    with pytest.raises(ManifestGapError, match=cause):
        chain.append(invalid)


def test_a_manifest_of_an_earlier_epoch_is_rejected(store: MemoryStore) -> None:
    Epochs(store, "shop").begin(epoch(1, {TOPIC: Start(topic_id="a", offsets={0: 10})}))
    chain = Chain(store, "shop", TOPIC)
    chain.append(manifest(1, 1, 10, 10, opens="why"))
    with pytest.raises(
        ManifestGapError, match=r"manifest 2 belongs to epoch 0, but manifest 1 belongs to epoch 1\. Nothing"
    ):
        chain.append(manifest(2, 0, 10, 12))


def test_an_opening_manifest_has_no_records() -> None:
    with pytest.raises(ValueError, match="opens an epoch but contains offsets"):
        manifest(2, 1, 10, 12, opens="why")


def test_object_names_of_later_epochs_contain_the_epoch() -> None:
    name = ObjectName("shop", TOPIC, 0, 1, 2, "json", 3)
    assert name.key.startswith(f"raw/shop/{TOPIC}/epoch=3/partition=0/")
    assert ObjectName.parse(name.key) == name
    first = ObjectName("shop", TOPIC, 0, 1, 2, "json")
    assert ObjectName.parse(first.key) == first
