"""The watermark of each stage, and the barrier: what it waits for and its message when it times out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Span
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.source import stream_progress
from cdc_lake.contract.source.epochs import Epoch, Epochs, Start
from cdc_lake.contract.source.stream_progress import StreamProgress
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import watermark
from cdc_lake.pipeline.source_health import stream_continuity, topic_state
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import HEARTBEATS
from resources.errors import ConnectorFailed
from resources.kafka.resource import Kafka

TABLES = [("sales", "orders"), ("sales", "customers"), ("sales", "cdc_heartbeat")]
Marks = Mapping[str, Watermark | None]


def marks(shop: Shop) -> Marks:
    """Return the watermark of the orders at each stage."""
    state = topic_state.current(shop.kafka, shop.orders, shop.bucket)
    return {
        "topic": table_progress.streamed_watermark(shop.bucket, shop.orders, state),
        "raw": table_progress.raw_watermark(shop.bucket, shop.orders, state),
        "lake": table_progress.lake_watermark(shop.bucket, shop.orders, state),
    }


def seconds(found: Marks) -> dict[str, float | None]:
    """Return the source time of each watermark in seconds since 1970."""
    return {stage: None if mark is None else mark.source_ts_ms / 1000 for stage, mark in found.items()}


def fresh(shop: Shop) -> dict[str, bool]:
    """Return whether the watermark check of each stage of the orders passes."""
    checks = watermark.light(shop.orders)
    return {each.key.asset_key.path[1]: each.evaluate(kafka=shop.kafka, store=shop.store).passed for each in checks}


def two_orders(shop: Shop) -> float:
    """Carry one order through, add another 500 s later, and return the time of the first one's heartbeat."""
    shop.order(1)
    shop.write_heartbeat()
    shop.carry()
    before = shop.now
    shop.now += 500
    shop.order(2)
    shop.write_heartbeat()
    return before


def test_without_heartbeats_there_is_no_watermark(shop: Shop) -> None:
    assert seconds(marks(shop)) == {"topic": None, "raw": None, "lake": None}
    assert fresh(shop) == {"topic": False, "raw": False, "lake": False}


def test_heartbeats_advance_all_stages_of_an_idle_source(shop: Shop) -> None:
    shop.order(1)
    shop.write_heartbeat()
    shop.carry()
    shop.now += 1000
    shop.write_heartbeat()
    assert set(seconds(marks(shop)).values()) == {shop.now}
    assert fresh(shop) == {"topic": True, "raw": True, "lake": True}


def test_heartbeats_advance_an_empty_source(shop: Shop) -> None:
    shop.write_heartbeat()
    assert fresh(shop) == {"topic": True, "raw": True, "lake": True}


def test_a_stopped_connector_makes_every_stage_late(shop: Shop) -> None:
    shop.now -= 700  # older than the bound of each stage, the lake's 10 minutes included
    shop.write_heartbeat()
    shop.streaming = False
    shop.now += 700
    shop.write_heartbeat()
    assert fresh(shop) == {"topic": False, "raw": False, "lake": False}


def test_each_stage_has_its_own_freshness_bound(shop: Shop) -> None:
    shop.now -= 90  # the YAML's bounds are 1, 2 and 10 minutes
    shop.write_heartbeat()
    assert fresh(shop) == {"topic": False, "raw": True, "lake": True}


def test_raw_and_lake_stay_at_the_manifest_watermark_until_records_are_landed(shop: Shop) -> None:
    before = two_orders(shop)
    found = seconds(marks(shop))
    assert found["topic"] == shop.now
    assert found["raw"] == found["lake"] == before


def test_the_lake_stays_at_its_checkpoint_until_landed_records_are_applied(shop: Shop) -> None:
    before = two_orders(shop)
    shop.land(shop.orders)
    found = seconds(marks(shop))
    assert found["raw"] == shop.now
    assert found["lake"] == before


def test_a_manifest_carries_the_heartbeat_read_before_its_offsets_were_fixed(shop: Shop) -> None:
    shop.order(1)
    shop.write_heartbeat()
    early = table_progress.landing_input(shop.orders, shop.kafka, S3Location("shop"))
    shop.now += 60
    shop.write_heartbeat()
    shop.land_by(early.spec)
    [manifest] = table_progress.manifests(shop.bucket, shop.orders)
    assert manifest.watermark == early.state.watermark


def test_a_heartbeat_does_not_cover_an_open_transaction_of_another_partition(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka writes a transaction's end to each partition separately; here only the heartbeat's partition has it."""
    monkeypatch.setattr(topic_state, "_SETTLE_SECONDS", 0.1)
    before = two_orders(shop)
    shop.kafka.hold(shop.orders.topic, 0, 1)
    assert seconds(marks(shop)) == {"topic": shop.now, "raw": before, "lake": before}
    shop.kafka.hold(shop.orders.topic, 0, None)
    shop.carry()
    assert set(seconds(marks(shop)).values()) == {shop.now}


def test_landing_next_to_an_open_transaction_keeps_the_previous_watermark(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_state, "_SETTLE_SECONDS", 0.1)
    before = two_orders(shop)
    shop.order(3)
    shop.kafka.hold(shop.orders.topic, 0, 2)
    shop.land(shop.orders)
    *_, manifest = table_progress.manifests(shop.bucket, shop.orders)
    assert manifest.next_offsets() == {0: 2}
    assert manifest.watermark is not None
    assert manifest.watermark.source_ts_ms / 1000 == before


def test_a_heartbeat_of_the_previous_epoch_is_no_watermark_of_the_current_one(shop: Shop) -> None:
    shop.order(1)
    shop.write_heartbeat()
    shop.carry()
    starts = {
        name: Start(topic_id=found.topic_id, offsets=shop.kafka.end_offsets(name))
        for name in (HEARTBEATS, shop.orders.topic)
        if (found := shop.kafka.topic(name)) is not None
    }
    now = datetime.now(UTC)
    began = Epoch(
        number=1, pipeline="shop", reason="lost", began_at=now, system_identifier="1", timeline=1, slot="s", lsn=1,
        starts=starts,
    )  # fmt: skip
    Epochs(shop.bucket, "shop").begin(began)
    stream_progress.save(shop.bucket, "shop", StreamProgress(epoch=1, acknowledged=None), None)
    chain = Chain(shop.bucket, "shop", shop.orders.topic)
    head = chain.head()
    assert head is not None
    opening = {"number": 2, "attempt": "a", "epoch": 1, "opens": "lost", "watermark": None, "objects": ()}
    chain.append(head.model_copy(update={**opening, "spans": (Span(partition=0, first=1, next=1),)}))
    assert seconds(marks(shop))["raw"] is None
    shop.order(2, snapshot="true")
    shop.land(shop.orders)
    assert seconds(marks(shop))["raw"] is None
    shop.now += 60
    shop.write_heartbeat()
    assert seconds(marks(shop))["raw"] == shop.now


def without_exactly_once(shop: Shop, stored: int) -> None:
    """Begin the first epoch, with a stored offset of Connect that covers everything up to this LSN."""
    shop.connect.put(shop.pipeline.connector, {"exactly.once.support": "requested"})
    shop.connect.store(shop.pipeline.connector, {"lsn": stored})
    if Epochs(shop.bucket, "shop").current() is None:
        stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    assert stream_continuity.find_faults(shop.pipeline, shop.source, shop.kafka, shop.connect, shop.bucket) == ()


def test_without_exactly_once_a_heartbeat_counts_once_connect_has_stored_its_offset(shop: Shop) -> None:
    """Acknowledgements of different partitions arrive in any order; here the second order's is still missing."""
    shop.postgres.ensure_publication("shop_publication", TABLES)
    shop.now -= 500
    shop.order(1)
    shop.postgres.write_heartbeat("sales")
    first, acknowledged = shop.now, shop.postgres.current_lsn()
    without_exactly_once(shop, acknowledged)
    shop.now += 500
    shop.streaming = False
    shop.order(2)
    shop.streaming = True
    shop.postgres.write_heartbeat("sales")
    shop.carry()
    assert seconds(marks(shop)) == {"topic": first, "raw": first, "lake": first}
    assert fresh(shop) == {"topic": False, "raw": False, "lake": True}
    *_, manifest = table_progress.manifests(shop.bucket, shop.orders)
    assert manifest.watermark is not None
    assert manifest.watermark.source_ts_ms / 1000 == first
    without_exactly_once(shop, shop.postgres.current_lsn())
    assert seconds(marks(shop)) == {"topic": shop.now, "raw": shop.now, "lake": shop.now}


def test_an_offset_that_is_stored_while_the_topics_ends_are_read_is_no_limit_of_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is older than the heartbeat can be acknowledged, and its offset stored, after the ends are read."""
    shop.postgres.ensure_publication("shop_publication", TABLES)
    without_exactly_once(shop, 1)
    shop.postgres.write_heartbeat("sales")
    read = topic_state.settled_ends

    def settled_ends(kafka: Kafka, topic: str) -> tuple[Mapping[int, int], bool]:
        ends = read(kafka, topic)
        without_exactly_once(shop, shop.postgres.current_lsn())
        return ends

    monkeypatch.setattr(topic_state, "settled_ends", settled_ends)
    assert table_progress.landing_input(shop.orders, shop.kafka, S3Location("shop")).spec.watermark is None
    assert seconds(marks(shop))["topic"] == shop.now, "the next read has the new limit"


def test_without_stored_progress_no_heartbeat_counts(shop: Shop) -> None:
    shop.postgres.ensure_publication("shop_publication", TABLES)
    shop.postgres.write_heartbeat("sales")
    without_exactly_once(shop, shop.postgres.current_lsn())
    assert seconds(marks(shop))["topic"] == shop.now
    shop.bucket.delete([object_names.stream_progress_key("shop")])
    assert seconds(marks(shop))["topic"] is None
    stream_continuity.require_no_gap(shop.pipeline, shop.kafka, shop.bucket)
    assert seconds(marks(shop))["topic"] is None
    without_exactly_once(shop, shop.postgres.current_lsn())
    assert seconds(marks(shop))["topic"] == shop.now


def test_the_barrier_without_exactly_once_waits_until_connect_has_stored_the_heartbeats_offset(
    shop: Shop,
) -> None:
    shop.connect.put(shop.pipeline.connector, {"exactly.once.support": "requested"})
    shop.connect.store(shop.pipeline.connector, {"lsn": shop.postgres.current_lsn()})
    with pytest.raises(ContractError, match=r"newest one there: 0/3F2; Connect has stored the offset of LSN 0/3E8"):
        table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=0.2)
    calls: list[int] = []

    def stored() -> None:
        calls.append(1)
        shop.connect.store(shop.pipeline.connector, {"lsn": shop.postgres.current_lsn() + 100})

    found = table_progress.barrier(
        shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=5, running=stored, poll_seconds=0.1
    )
    assert calls
    assert found.lsn >= 1020


def test_a_heartbeat_read_by_a_snapshot_does_not_count(shop: Shop) -> None:
    for mode in ("first", "true", "last", "incremental"):
        shop.write_heartbeat(snapshot=mode)
        assert topic_state.newest_heartbeat(shop.kafka, shop.pipeline) is None
    shop.write_heartbeat()
    assert topic_state.newest_heartbeat(shop.kafka, shop.pipeline) is not None


def test_a_tombstone_is_not_a_heartbeat(shop: Shop) -> None:
    shop.kafka.send(HEARTBEATS, None)
    assert topic_state.newest_heartbeat(shop.kafka, shop.pipeline) is None


def test_without_the_heartbeat_topic_there_is_no_heartbeat(shop: Shop) -> None:
    shop.kafka.delete_topic(HEARTBEATS)
    assert topic_state.newest_heartbeat(shop.kafka, shop.pipeline) is None


def test_a_recreated_topic_does_not_advance_raw(shop: Shop) -> None:
    shop.order(1)
    shop.write_heartbeat()
    shop.carry()
    before = shop.now
    shop.kafka.make(shop.orders.topic)
    shop.now += 500
    shop.write_heartbeat()
    assert seconds(marks(shop))["raw"] == before


def test_landing_during_the_read_does_not_make_raw_late(shop: Shop) -> None:
    shop.order(1)
    shop.write_heartbeat()
    early = topic_state.current(shop.kafka, shop.orders, shop.bucket)
    shop.order(2)
    shop.land(shop.orders)
    assert table_progress.raw_watermark(shop.bucket, shop.orders, early) == early.watermark


def test_a_missing_topic_names_the_asset_to_materialise(shop: Shop) -> None:
    shop.kafka.delete_topic(shop.orders.topic)
    with pytest.raises(
        ContractError,
        match=r"topic shop\.sales\.orders: it does not exist yet\. Materialise shop/topic/orders_topic first",
    ):
        topic_state.current(shop.kafka, shop.orders, shop.bucket)


def test_the_barrier_returns_after_its_own_heartbeat(shop: Shop) -> None:
    found = table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=0.5)
    assert found.lsn >= shop.postgres.current_lsn()


def test_the_barrier_waits_for_a_later_heartbeat(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.streaming = False
    calls: list[int] = []
    real = topic_state.newest_heartbeat

    def delayed(*arguments: object) -> Watermark | None:
        calls.append(1)
        if len(calls) == 3:
            shop.streaming = True
            shop.postgres.write_heartbeat("sales")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(topic_state, "newest_heartbeat", delayed)
    assert (
        table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=5).lsn
        == shop.postgres.current_lsn()
    )
    assert len(calls) == 3


def test_the_barrier_repeats_its_heartbeat_for_a_stream_that_starts_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_progress, "_HEARTBEAT_SECONDS", 0.1)
    beats: list[int] = []

    def start_streaming_at_second_beat(lsn: int) -> None:
        beats.append(lsn)
        shop.streaming = len(beats) >= 2  # the first heartbeat was read by the snapshot and is never streamed

    shop.postgres.listeners.insert(0, start_streaming_at_second_beat)
    shop.streaming = False
    assert table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=5).lsn == beats[1]


def test_the_barrier_of_an_epoch_ignores_heartbeats_of_the_previous_epoch(shop: Shop) -> None:
    """The LSNs of a new server are below those streamed from the previous one for a long time."""
    shop.postgres.write_heartbeat("sales")
    shop.postgres.rewind(900)
    since = Start(topic_id="t", offsets=shop.kafka.end_offsets(shop.pipeline.heartbeat_topic))
    shop.streaming = False
    with pytest.raises(ContractError, match="newest one there: none"):
        table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=0.2, since=since)
    shop.streaming = True
    found = table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=5, since=since)
    assert found.lsn == shop.postgres.current_lsn()


def test_the_barrier_fails_with_a_failed_connector(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_progress, "_HEARTBEAT_SECONDS", 0.1)
    shop.streaming = False

    def failed() -> None:
        raise ConnectorFailed("Connector cdc-lake-shop: task 0 FAILED.")

    with pytest.raises(ConnectorFailed):
        table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=60, running=failed)


def test_the_barrier_timeout_names_connector_and_remedy(shop: Shop) -> None:
    shop.write_heartbeat()
    shop.streaming = False
    with pytest.raises(ContractError) as caught:
        table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=0.2)
    message = caught.value.user_message
    assert "connector cdc-lake-shop did not write the heartbeat at that LSN to shop.sales.cdc_heartbeat" in message
    assert "newest one there: 0/3E9" in message
    assert "cdc-lake logs connect" in message


def test_the_barrier_timeout_reports_that_no_heartbeat_was_streamed(shop: Shop) -> None:
    shop.streaming = False
    with pytest.raises(ContractError, match="newest one there: none"):
        table_progress.barrier(shop.source, shop.kafka, shop.connect, shop.pipeline, seconds=0.2)


@pytest.mark.parametrize(
    ("landed", "ends", "behind"),
    [
        ({0: 5, 1: 5}, {0: 5, 1: 5}, 0),
        ({0: 5, 1: 5}, {0: 7, 1: 6}, 3),
        ({0: 5}, {0: 5, 1: 4}, 4),
        ({0: 5, 1: 5}, {0: 4, 1: 6}, -1),
        ({0: 5, 1: 5}, {0: 4, 1: 60}, -1),
    ],
    ids=["landed", "pending in both", "a new partition", "one lost, one gained", "one lost, many gained"],
)
def test_a_lost_record_is_not_hidden_by_new_records_of_another_partition(
    shop: Shop, landed: dict[int, int], ends: dict[int, int], behind: int
) -> None:
    state = replace(topic_state.current(shop.kafka, shop.orders, shop.bucket), ends=ends)
    spans = tuple(Span(partition=partition, first=0, next=end) for partition, end in landed.items())
    shop.land(shop.orders)
    head = Chain(shop.bucket, "shop", shop.orders.topic).head()
    assert head is not None
    assert table_progress.offsets_behind(head.model_copy(update={"spans": spans}), state) == behind
