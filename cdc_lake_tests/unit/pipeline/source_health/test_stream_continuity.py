"""Faults that break the stream, on fakes; they are reported until a new epoch begins. Also states that are no fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from cdc_lake.contract.errors import ContractError, SourceBrokenError
from cdc_lake.contract.source import stream_progress
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs, Start
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import HEARTBEATS

PUBLICATION = "shop_publication"
TABLES = [("sales", "orders"), ("sales", "customers"), ("sales", "cdc_heartbeat")]


@pytest.fixture
def begun(shop: Shop) -> Shop:
    """The shop in its first epoch, with a snapshot and a stream that was examined."""
    shop.postgres.ensure_publication(PUBLICATION, TABLES)
    shop.connect.delete(shop.pipeline.connector)
    shop.postgres.drop_slot(shop.pipeline.slot)
    stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    shop.connect.put(shop.pipeline.connector, {"connector.class": "Debezium"})
    shop.postgres.put_slot(shop.pipeline.slot)
    shop.connect.store(shop.pipeline.connector, {"lsn": 995, "lsn_proc": None, "ts_usec": 1})
    shop.write_heartbeat(snapshot="first")
    write_heartbeat(shop)
    assert find_faults(shop) == ()
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1001, completed_at=datetime.now(UTC)))
    return shop


def write_heartbeat(shop: Shop) -> None:
    """Stream a heartbeat."""
    shop.postgres.write_heartbeat("sales")


def find_faults(shop: Shop) -> tuple[str, ...]:
    """Return the faults of the shop's stream."""
    return stream_continuity.find_faults(shop.pipeline, shop.source, shop.kafka, shop.connect, shop.bucket)


def lose_a_heartbeat(shop: Shop) -> None:
    shop.streaming = False
    write_heartbeat(shop)
    shop.streaming = True
    write_heartbeat(shop)


def slot_ahead(shop: Shop, halt: Callable[[], object]) -> None:
    halt()
    shop.postgres.put_slot(shop.pipeline.slot, confirmed_flush_lsn=996)


def restart_the_counter(shop: Shop) -> None:
    shop.beats = 0
    write_heartbeat(shop)


def recreate_heartbeat_topic(shop: Shop) -> None:
    shop.kafka.make(HEARTBEATS)


FAULTS: dict[str, tuple[Callable[[Shop], object], str]] = {
    "slot_dropped": (
        lambda shop: shop.postgres.drop_slot(shop.pipeline.slot),
        "replication slot cdc_lake_shop does not exist any more",
    ),
    "slot_recreated_while_the_connector_is_stopped": (
        lambda shop: slot_ahead(shop, lambda: shop.connect.ensure_stopped(shop.pipeline.connector, {})),
        "begins at 0/3E4, after the offset 0/3E3 of connector cdc-lake-shop",
    ),
    "slot_recreated_and_the_task_has_failed": (
        lambda shop: slot_ahead(shop, lambda: shop.connect.fail(shop.pipeline.connector, "the slot is ahead")),
        "begins at 0/3E4, after the offset 0/3E3 of connector cdc-lake-shop",
    ),
    "slot_recreated_and_the_connector_has_failed": (
        lambda shop: slot_ahead(
            shop, lambda: shop.connect.fail(shop.pipeline.connector, "the slot is ahead", connector_too=True)
        ),
        "begins at 0/3E4, after the offset 0/3E3 of connector cdc-lake-shop",
    ),
    "slot_invalidated": (
        lambda shop: shop.postgres.put_slot(
            shop.pipeline.slot, invalidation_reason="wal_removed", confirmed_flush_lsn=None, restart_lsn=None
        ),
        r"was invalidated by the server \(wal_removed\)",
    ),
    "offset_lost": (lambda shop: shop.connect.store(shop.pipeline.connector, None), "has no offset of connector"),
    "publication_dropped": (
        lambda shop: shop.postgres.drop_publication(PUBLICATION),
        "publication shop_publication of database shopdb was dropped",
    ),
    "publication_recreated": (lambda shop: shop.postgres.republish(PUBLICATION), "was dropped and re-created"),
    "table_removed": (
        lambda shop: shop.postgres.republish(PUBLICATION, "x", tables=TABLES[1:]),
        r"does not publish sales\.orders any more",
    ),
    "table_removed_and_added": (
        lambda shop: shop.postgres.republish(PUBLICATION, "sales", "customers"),
        r"lacked sales\.customers for a while",
    ),
    "publication_without_deletes": (
        lambda shop: shop.postgres.republish(PUBLICATION, "version", unpublished="delete"),
        "does not publish every delete",
    ),
    "publication_altered_and_restored": (lambda shop: shop.postgres.republish(PUBLICATION, "version"), "was altered"),
    "another_cluster": (
        lambda shop: shop.postgres.becomes(system_identifier="7000000000000000002"),
        r"is another database cluster \(system identifier 7000000000000000002, before 7000000000000000001\)",
    ),
    "another_timeline": (lambda shop: shop.postgres.becomes(timeline=2), r"\(timeline 2, before 1\)"),
    "restored_from_a_backup": (
        lambda shop: shop.connect.store(shop.pipeline.connector, {"lsn": 10**9}),
        "was restored to an older state: its WAL ends at 0/3F2, but changes up to 0/3B9ACA00 were streamed",
    ),
    "heartbeat_missing": (lose_a_heartbeat, r"1 heartbeats are missing between 0/3F2 and 0/406 \(after number 2\)"),
    "counter_went_back": (restart_the_counter, "counter went back from 2 to 1"),
    "unrequested_snapshot": (lambda shop: shop.write_heartbeat(snapshot="first"), "took a new snapshot"),
    "heartbeat_topic_deleted": (lambda shop: shop.kafka.delete_topic(HEARTBEATS), "was deleted"),
    "heartbeat_topic_recreated": (recreate_heartbeat_topic, "was deleted and re-created"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_even_after_it_disappeared(begun: Shop, fault: str) -> None:
    cause, message = FAULTS[fault]
    cause(begun)
    with pytest.raises(SourceBrokenError, match=f"{message}.*cdc-lake resnapshot shop"):
        stream_continuity.require_no_faults(begun.pipeline, begun.source, begun.kafka, begun.connect, begun.bucket)
    for name in ("becomes", "put_slot"):  # the source looks healthy again
        assert hasattr(begun.postgres, name)
    begun.postgres.becomes(system_identifier="7000000000000000001", timeline=1)
    begun.postgres.put_slot(begun.pipeline.slot)
    begun.connect.store(begun.pipeline.connector, {"lsn": 995})
    assert find_faults(begun)
    with pytest.raises(SourceBrokenError, match=message):
        stream_continuity.require_no_gap(begun.pipeline, begun.kafka, begun.bucket)


def test_healthy_and_stopped_streams_have_no_fault(begun: Shop) -> None:
    for _ in range(3):
        write_heartbeat(begun)
        assert find_faults(begun) == ()
    begun.postgres.put_slot(begun.pipeline.slot, active=False)
    begun.connect.run(begun.pipeline.connector, "STOPPED")
    assert find_faults(begun) == ()
    begun.connect.delete(begun.pipeline.connector, offsets=False)
    assert find_faults(begun) == ()
    begun.postgres.republish(PUBLICATION, "x", tables=[*TABLES, ("sales", "more")])
    assert find_faults(begun) == ()


def test_a_running_connector_confirms_to_the_slot_before_connect_stores_its_offset(begun: Shop) -> None:
    """Without exactly-once, the slot is repeatedly ahead of the stored offset by up to one flush interval."""
    for stored in (995, 995, 1005):
        begun.connect.store(begun.pipeline.connector, {"lsn": stored})
        begun.postgres.put_slot(begun.pipeline.slot, confirmed_flush_lsn=stored + 5)
        assert find_faults(begun) == ()


def test_a_missing_offset_is_a_fault_only_after_the_first_flush(shop: Shop) -> None:
    """Without exactly-once, Connect stores no offset before its first flush."""
    shop.postgres.ensure_publication(PUBLICATION, TABLES)
    shop.connect.delete(shop.pipeline.connector)
    shop.postgres.drop_slot(shop.pipeline.slot)
    stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    shop.connect.put(shop.pipeline.connector, {"connector.class": "Debezium"})
    shop.connect.store(shop.pipeline.connector, None)
    shop.postgres.put_slot(shop.pipeline.slot)
    write_heartbeat(shop)
    assert find_faults(shop) == ()
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1001, completed_at=datetime.now(UTC)))
    assert find_faults(shop) == ()
    shop.connect.store(shop.pipeline.connector, {"lsn": 995})
    assert find_faults(shop) == ()
    shop.connect.store(shop.pipeline.connector, None)
    assert "has no offset of connector" in find_faults(shop)[0]


@pytest.mark.parametrize(("support", "stored", "acknowledged"), [("required", 995, None), ("requested", 995, 995)])
def test_the_acknowledged_lsn_is_stored_without_exactly_once(
    begun: Shop, support: str, stored: int, acknowledged: int | None
) -> None:
    begun.connect.put(begun.pipeline.connector, {"exactly.once.support": support})
    begun.connect.store(begun.pipeline.connector, {"lsn": stored, "lsn_proc": stored - 1})
    assert find_faults(begun) == ()
    assert _limit(begun, 0) == acknowledged
    assert _limit(begun, 1) == 0, "the progress of another epoch proves nothing"
    begun.connect.delete(begun.pipeline.connector, offsets=False)  # kept while there is no connector
    assert find_faults(begun) == ()
    assert _limit(begun, 0) == acknowledged


def _limit(shop: Shop, epoch: int) -> int | None:
    found = stream_progress.load(shop.bucket, "shop")
    assert found is not None
    return found.limit(epoch)


def test_records_delivered_twice_are_not_a_gap(begun: Shop) -> None:
    records = [message.value for message in begun.kafka.peek(HEARTBEATS)]
    write_heartbeat(begun)
    for value in records[1:]:
        begun.kafka.send(HEARTBEATS, value)
    assert find_faults(begun) == ()
    write_heartbeat(begun)
    assert find_faults(begun) == ()


def test_heartbeats_are_read_once(begun: Shop) -> None:
    for _ in range(5):
        write_heartbeat(begun)
    assert find_faults(begun) == ()
    stored = stream_progress.load(begun.bucket, "shop")
    assert stored is not None
    assert stored.offsets == begun.kafka.end_offsets(HEARTBEATS)
    assert stored.heartbeat is not None
    assert stored.heartbeat.counter == begun.beats
    assert stored.snapshots == (1001,)


def test_heartbeats_that_expired_unread_are_not_a_gap(begun: Shop) -> None:
    for _ in range(5):
        write_heartbeat(begun)
    topic = begun.kafka._topics[HEARTBEATS]
    topic.begins[0] = 5
    assert find_faults(begun) == ()
    lose_a_heartbeat(begun)
    assert "heartbeats are missing" in find_faults(begun)[0]


def test_a_pipeline_that_was_never_started_has_no_faults(shop: Shop) -> None:
    shop.postgres.drop_slot(shop.pipeline.slot)
    assert find_faults(shop) == ()
    stream_continuity.require_no_gap(shop.pipeline, shop.kafka, shop.bucket)


def test_an_existing_slot_of_an_unknown_owner_is_rejected(shop: Shop) -> None:
    shop.connect.delete(shop.pipeline.connector)
    with pytest.raises(SourceBrokenError, match="exists already, from another or an earlier deployment"):
        stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    assert Epochs(shop.bucket, "shop").current() is None


def test_a_pipeline_from_before_epochs_gets_epoch_zero(shop: Shop) -> None:
    shop.connect.put(shop.pipeline.connector, {"connector.class": "Debezium"})
    epoch = stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    assert (epoch.number, epoch.reason) == (0, "it ran before epochs were stored")
    assert Epochs(shop.bucket, "shop").completion(0) is not None
    assert stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket) == epoch


def test_a_new_epoch_clears_the_faults(begun: Shop) -> None:
    begun.postgres.drop_slot(begun.pipeline.slot)
    assert find_faults(begun)
    topic = begun.kafka.topic(HEARTBEATS)
    assert topic is not None
    start = Start(topic_id=topic.topic_id, offsets=begun.kafka.end_offsets(HEARTBEATS))
    after = stream_continuity.new_epoch(begun.pipeline, begun.source, 1, "why")
    epochs = Epochs(begun.bucket, "shop")
    epochs.begin(Epoch.model_validate({**after.model_dump(), "starts": {HEARTBEATS: start}}))
    assert find_faults(begun) == ()
    with pytest.raises(ContractError, match="a resnapshot is running, or was interrupted"):
        stream_continuity.require_no_resnapshot(begun.pipeline, epochs, after, "start connector x")
    epochs.complete(1, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    stream_continuity.require_no_resnapshot(begun.pipeline, epochs, after, "start connector x")


def test_a_record_of_an_older_release_is_replaced(begun: Shop) -> None:
    """It has fewer fields, which the next check adds."""
    [key] = [key for key in begun.bucket.objects if key.endswith("_continuity.json")]
    older = json.loads(begun.bucket.get(key).body)  # type: ignore[union-attr]
    del older["offset"], older["acknowledged"]
    stored = begun.bucket.get(key)
    assert stored is not None
    begun.bucket.replace(key, json.dumps(older).encode(), stored.etag)
    assert find_faults(begun) == ()
    found = stream_progress.load(begun.bucket, "shop")
    assert found is not None
    assert (found.offset, found.acknowledged) == (True, 995)


def test_an_outdated_save_does_not_overwrite_a_newer_record(begun: Shop) -> None:
    before = stream_progress.load(begun.bucket, "shop")
    write_heartbeat(begun)
    find_faults(begun)
    later = stream_progress.load(begun.bucket, "shop")
    assert before is not None
    stream_progress.save(begun.bucket, "shop", before.model_copy(update={"snapshots": (7,)}), before)
    assert stream_progress.load(begun.bucket, "shop") == later


def test_progress_that_an_earlier_version_stored_is_read() -> None:
    found = stream_progress.StreamProgress.model_validate_json('{"epoch": 0, "beat": {"beats": 7, "lsn": 995}}')
    assert found.heartbeat == stream_progress.Heartbeat(counter=7, lsn=995)
    assert stream_progress.StreamProgress.model_validate_json(found.model_dump_json()) == found
