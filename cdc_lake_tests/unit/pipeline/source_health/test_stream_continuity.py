"""What breaks a stream, fault by fault over fakes; what is no fault; and that it stays told until an epoch begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from cdc_lake.contract.errors import ContractError, SourceBrokenError
from cdc_lake.contract.source import stream_progress as sightings
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs, Start
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.shop_pipeline import HEARTBEATS

PUBLICATION = "shop_publication"
TABLES = [("sales", "orders"), ("sales", "customers"), ("sales", "cdc_heartbeat")]


@pytest.fixture
def begun(shop: World) -> World:
    """The shop in its first epoch, with a snapshot, a stream and a proof of it so far."""
    shop.postgres.ensure_publication(PUBLICATION, TABLES)
    shop.connect.delete(shop.flow.connector)
    shop.postgres.drop_slot(shop.flow.slot)
    stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    shop.connect.put(shop.flow.connector, {"connector.class": "Debezium"})
    shop.postgres.put_slot(shop.flow.slot)
    shop.connect.store(shop.flow.connector, {"lsn": 995, "lsn_proc": None, "ts_usec": 1})
    shop.beat(snapshot="first")
    beat(shop)
    assert examine(shop) == ()
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1001, completed_at=datetime.now(UTC)))
    return shop


def beat(shop: World) -> None:
    """A heartbeat is streamed."""
    shop.postgres.beat("sales")


def examine(shop: World) -> tuple[str, ...]:
    """What breaks the shop's stream."""
    return stream_continuity.examine(shop.flow, shop.postgres, shop.kafka, shop.connect, shop.bucket)


def skip_a_beat(shop: World) -> None:
    shop.streaming = False
    beat(shop)
    shop.streaming = True
    beat(shop)


def slot_ahead(shop: World, halt: Callable[[], object]) -> None:
    halt()
    shop.postgres.put_slot(shop.flow.slot, confirmed_flush_lsn=996)


def count_from_one(shop: World) -> None:
    shop.beats = 0
    beat(shop)


def recreate_heartbeats(shop: World) -> None:
    shop.kafka.make(HEARTBEATS)


FAULTS: dict[str, tuple[Callable[[World], object], str]] = {
    "slot_dropped": (lambda shop: shop.postgres.drop_slot(shop.flow.slot), "replication slot cdc_lake_shop is gone"),
    "slot_made_again_while_it_is_stopped": (
        lambda shop: slot_ahead(shop, lambda: shop.connect.halt(shop.flow.connector, {})),
        "begins at 0/3E4, after 0/3E3, where connector cdc-lake-shop stands",
    ),
    "slot_made_again_and_its_task_has_failed": (
        lambda shop: slot_ahead(shop, lambda: shop.connect.fail(shop.flow.connector, "the slot is ahead")),
        "begins at 0/3E4, after 0/3E3, where connector cdc-lake-shop stands",
    ),
    "slot_made_again_and_the_connector_has_failed": (
        lambda shop: slot_ahead(
            shop, lambda: shop.connect.fail(shop.flow.connector, "the slot is ahead", connector_too=True)
        ),
        "begins at 0/3E4, after 0/3E3, where connector cdc-lake-shop stands",
    ),
    "slot_invalidated": (
        lambda shop: shop.postgres.put_slot(
            shop.flow.slot, invalidation_reason="wal_removed", confirmed_flush_lsn=None, restart_lsn=None
        ),
        r"was invalidated by the server \(wal_removed\)",
    ),
    "offset_lost": (lambda shop: shop.connect.store(shop.flow.connector, None), "has no offset of connector"),
    "publication_dropped": (
        lambda shop: shop.postgres.drop_publication(PUBLICATION),
        "publication shop_publication of database shopdb was dropped",
    ),
    "publication_made_again": (lambda shop: shop.postgres.republish(PUBLICATION), "was dropped and made again"),
    "table_removed": (
        lambda shop: shop.postgres.republish(PUBLICATION, "x", tables=TABLES[1:]),
        r"does not publish sales\.orders any more",
    ),
    "table_removed_and_added": (
        lambda shop: shop.postgres.republish(PUBLICATION, "sales", "customers"),
        r"was without sales\.customers for a while",
    ),
    "narrowed": (
        lambda shop: shop.postgres.republish(PUBLICATION, "version", held_back="delete"),
        "does not publish every delete",
    ),
    "narrowed_for_a_while": (lambda shop: shop.postgres.republish(PUBLICATION, "version"), "was altered"),
    "another_cluster": (
        lambda shop: shop.postgres.becomes(system_identifier="7000000000000000002"),
        r"is another database cluster \(system identifier 7000000000000000002, before 7000000000000000001\)",
    ),
    "another_timeline": (lambda shop: shop.postgres.becomes(timeline=2), r"\(timeline 2, before 1\)"),
    "put_back": (
        lambda shop: shop.connect.store(shop.flow.connector, {"lsn": 10**9}),
        "was put back to an older state: its WAL ends at 0/3F2, and 0/3B9ACA00 was streamed",
    ),
    "beat_missing": (skip_a_beat, r"1 heartbeats are missing between 0/3F2 and 0/406 \(after number 2\)"),
    "counter_went_back": (count_from_one, "counter went back from 2 to 1"),
    "snapshot_by_itself": (lambda shop: shop.beat(snapshot="first"), "took a snapshot by itself"),
    "heartbeats_deleted": (lambda shop: shop.kafka.delete_topic(HEARTBEATS), "was deleted"),
    "heartbeats_made_again": (recreate_heartbeats, "was deleted and made again"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_and_stays_told(begun: World, fault: str) -> None:
    act, said = FAULTS[fault]
    act(begun)
    with pytest.raises(SourceBrokenError, match=f"{said}.*cdc-lake resnapshot shop"):
        stream_continuity.require_whole(begun.flow, begun.postgres, begun.kafka, begun.connect, begun.bucket)
    for name in ("becomes", "put_slot"):  # as if everything were right again
        assert hasattr(begun.postgres, name)
    begun.postgres.becomes(system_identifier="7000000000000000001", timeline=1)
    begun.postgres.put_slot(begun.flow.slot)
    begun.connect.store(begun.flow.connector, {"lsn": 995})
    assert examine(begun)
    with pytest.raises(SourceBrokenError, match=said):
        stream_continuity.require_proven(begun.flow, begun.kafka, begun.bucket)


def test_what_is_no_fault(begun: World) -> None:
    for _ in range(3):
        beat(begun)
        assert examine(begun) == ()
    begun.postgres.put_slot(begun.flow.slot, active=False)
    begun.connect.run(begun.flow.connector, "STOPPED")
    assert examine(begun) == ()
    begun.connect.delete(begun.flow.connector, offsets=False)
    assert examine(begun) == ()
    begun.postgres.republish(PUBLICATION, "x", tables=[*TABLES, ("sales", "more")])
    assert examine(begun) == ()


def test_a_running_connector_confirms_to_the_slot_before_connect_stores_its_offset(begun: World) -> None:
    """Without exactly-once: by up to one flush interval, again and again."""
    for stored in (995, 995, 1005):
        begun.connect.store(begun.flow.connector, {"lsn": stored})
        begun.postgres.put_slot(begun.flow.slot, confirmed_flush_lsn=stored + 5)
        assert examine(begun) == ()


def test_a_first_snapshot_has_no_offset_for_a_while(shop: World) -> None:
    """Without exactly-once: until the first flush, after which it can be lost."""
    shop.postgres.ensure_publication(PUBLICATION, TABLES)
    shop.connect.delete(shop.flow.connector)
    shop.postgres.drop_slot(shop.flow.slot)
    stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    shop.connect.put(shop.flow.connector, {"connector.class": "Debezium"})
    shop.connect.store(shop.flow.connector, None)
    shop.postgres.put_slot(shop.flow.slot)
    beat(shop)
    assert examine(shop) == ()
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1001, completed_at=datetime.now(UTC)))
    assert examine(shop) == ()
    shop.connect.store(shop.flow.connector, {"lsn": 995})
    assert examine(shop) == ()
    shop.connect.store(shop.flow.connector, None)
    assert "has no offset of connector" in examine(shop)[0]


@pytest.mark.parametrize(("support", "stored", "noted"), [("required", 995, None), ("requested", 995, 995)])
def test_up_to_where_kafka_has_everything_is_noted_without_exactly_once(
    begun: World, support: str, stored: int, noted: int | None
) -> None:
    begun.connect.put(begun.flow.connector, {"exactly.once.support": support})
    begun.connect.store(begun.flow.connector, {"lsn": stored, "lsn_proc": stored - 1})
    assert examine(begun) == ()
    assert sightings.acknowledged(begun.bucket, "shop", 0) == noted
    assert sightings.acknowledged(begun.bucket, "shop", 1) is None
    begun.connect.delete(begun.flow.connector, offsets=False)  # it stays so while there is none to ask
    assert examine(begun) == ()
    assert sightings.acknowledged(begun.bucket, "shop", 0) == noted


def test_what_was_delivered_twice_is_no_gap(begun: World) -> None:
    records = [message.value for message in begun.kafka.peek(HEARTBEATS)]
    beat(begun)
    for value in records[1:]:
        begun.kafka.send(HEARTBEATS, value)
    assert examine(begun) == ()
    beat(begun)
    assert examine(begun) == ()


def test_beats_are_read_once(begun: World) -> None:
    for _ in range(5):
        beat(begun)
    assert examine(begun) == ()
    seen = sightings.load(begun.bucket, "shop")
    assert seen is not None
    assert seen.offsets == begun.kafka.end_offsets(HEARTBEATS)
    assert seen.beat is not None
    assert seen.beat.beats == begun.beats
    assert seen.snapshots == (1001,)


def test_beats_that_expired_unseen_prove_nothing_and_break_nothing(begun: World) -> None:
    for _ in range(5):
        beat(begun)
    topic = begun.kafka._topics[HEARTBEATS]
    topic.begins[0] = 5
    assert examine(begun) == ()
    skip_a_beat(begun)
    assert "heartbeats are missing" in examine(begun)[0]


def test_a_pipeline_that_has_not_begun_has_no_faults(shop: World) -> None:
    shop.postgres.drop_slot(shop.flow.slot)
    assert examine(shop) == ()
    stream_continuity.require_proven(shop.flow, shop.kafka, shop.bucket)


def test_a_slot_of_somebody_else_is_left_alone(shop: World) -> None:
    shop.connect.delete(shop.flow.connector)
    with pytest.raises(SourceBrokenError, match="it is another deployment's, or left over"):
        stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    assert Epochs(shop.bucket, "shop").current() is None


def test_a_pipeline_that_ran_before_epochs_were_kept_is_adopted(shop: World) -> None:
    shop.connect.put(shop.flow.connector, {"connector.class": "Debezium"})
    epoch = stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    assert (epoch.number, epoch.reason) == (0, "it ran before epochs were kept")
    assert Epochs(shop.bucket, "shop").completion(0) is not None
    assert stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket) == epoch


def test_the_next_epoch_starts_clean(begun: World) -> None:
    begun.postgres.drop_slot(begun.flow.slot)
    assert examine(begun)
    topic = begun.kafka.topic(HEARTBEATS)
    assert topic is not None
    start = Start(topic_id=topic.topic_id, offsets=begun.kafka.end_offsets(HEARTBEATS))
    after = stream_continuity.beginning(begun.flow, begun.postgres, 1, "why")
    epochs = Epochs(begun.bucket, "shop")
    epochs.begin(Epoch.model_validate({**after.model_dump(), "starts": {HEARTBEATS: start}}))
    assert examine(begun) == ()
    with pytest.raises(ContractError, match="a resnapshot is under way, or was cut off"):
        stream_continuity.require_finished(begun.flow, epochs, after)
    epochs.complete(1, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    stream_continuity.require_finished(begun.flow, epochs, after)


def test_what_an_older_version_has_kept_is_replaced(begun: World) -> None:
    """It wrote fewer fields: the next look adds them, and goes on from there."""
    [key] = [key for key in begun.bucket.objects if key.endswith("_continuity.json")]
    older = json.loads(begun.bucket.get(key).body)  # type: ignore[union-attr]  # it is there
    del older["offset"], older["acknowledged"]
    stored = begun.bucket.get(key)
    assert stored is not None
    begun.bucket.replace(key, json.dumps(older).encode(), stored.etag)
    assert examine(begun) == ()
    found = sightings.load(begun.bucket, "shop")
    assert found is not None
    assert (found.offset, found.acknowledged) == (True, 995)


def test_nobody_else_overwrites_what_was_seen_later(begun: World) -> None:
    before = sightings.load(begun.bucket, "shop")
    beat(begun)
    examine(begun)
    later = sightings.load(begun.bucket, "shop")
    assert before is not None
    sightings.save(begun.bucket, "shop", before.model_copy(update={"snapshots": (7,)}), before)
    assert sightings.load(begun.bucket, "shop") == later
