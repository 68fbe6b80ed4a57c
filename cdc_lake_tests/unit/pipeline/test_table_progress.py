"""The watermark's rules, stage by stage, and the barrier: what it waits for and what it says when it doesn't come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Span
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.source.epochs import Epoch, Epochs, Start
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import watermark
from cdc_lake.pipeline.source_health import stream_continuity, topic_state
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.shop_pipeline import HEARTBEATS
from resources.errors import ConnectorFailed

TABLES = [("sales", "orders"), ("sales", "customers"), ("sales", "cdc_heartbeat")]
Marks = Mapping[str, Watermark | None]


def marks(shop: World) -> Marks:
    """The orders' watermark at each stage."""
    state = topic_state.now(shop.kafka, shop.orders)
    return {
        "topic": table_progress.streamed_watermark(shop.bucket, shop.orders, state),
        "raw": table_progress.raw_watermark(shop.bucket, shop.orders, state),
        "lake": table_progress.lake_watermark(shop.bucket, shop.orders, state),
    }


def seconds(found: Marks) -> dict[str, float | None]:
    """When the heartbeats were committed, in seconds since 1970."""
    return {stage: None if mark is None else mark.source_ts_ms / 1000 for stage, mark in found.items()}


def fresh(shop: World) -> dict[str, bool]:
    """The watermark checks of orders."""
    checks = watermark.light(shop.orders)
    return {each.key.asset_key.path[1]: each.find(kafka=shop.kafka, store=shop.store).passed for each in checks}


def two_orders(shop: World) -> float:
    """An order that is carried through, and 500 s later one that isn't yet; when the first one's heartbeat was."""
    shop.order(1)
    shop.beat()
    shop.carry()
    before = shop.now
    shop.now += 500
    shop.order(2)
    shop.beat()
    return before


def test_nothing_has_beaten_yet(shop: World) -> None:
    assert seconds(marks(shop)) == {"topic": None, "raw": None, "lake": None}
    assert fresh(shop) == {"topic": False, "raw": False, "lake": False}


def test_an_idle_source_moves_all_stages_on(shop: World) -> None:
    shop.order(1)
    shop.beat()
    shop.carry()
    shop.now += 1000
    shop.beat()
    assert set(seconds(marks(shop)).values()) == {shop.now}
    assert fresh(shop) == {"topic": True, "raw": True, "lake": True}


def test_a_source_without_any_row_moves_on_too(shop: World) -> None:
    shop.beat()
    assert fresh(shop) == {"topic": True, "raw": True, "lake": True}


def test_a_stopped_connector_makes_every_stage_old(shop: World) -> None:
    shop.now -= 700  # older than the bound of each stage, the lake's 10 minutes included
    shop.beat()
    shop.streaming = False
    shop.now += 700
    shop.beat()
    assert fresh(shop) == {"topic": False, "raw": False, "lake": False}


def test_each_stage_has_its_own_bound(shop: World) -> None:
    shop.now -= 90  # the YAML's bounds are 1, 2 and 10 minutes
    shop.beat()
    assert fresh(shop) == {"topic": False, "raw": True, "lake": True}


def test_what_is_not_landed_holds_raw_and_lake_at_the_manifests_watermark(shop: World) -> None:
    before = two_orders(shop)
    found = seconds(marks(shop))
    assert found["topic"] == shop.now
    assert found["raw"] == found["lake"] == before


def test_what_is_landed_and_not_applied_holds_the_lake_at_its_checkpoint(shop: World) -> None:
    before = two_orders(shop)
    shop.land(shop.orders)
    found = seconds(marks(shop))
    assert found["raw"] == shop.now
    assert found["lake"] == before


def test_a_manifest_carries_the_heartbeat_from_before_its_offsets_were_fixed(shop: World) -> None:
    shop.order(1)
    shop.beat()
    early = table_progress.landing(shop.orders, shop.kafka, S3Location("shop"))
    shop.now += 60
    shop.beat()
    shop.land_by(early.spec)
    [manifest] = table_progress.manifests(shop.bucket, shop.orders)
    assert manifest.watermark == early.state.watermark


def test_a_heartbeat_does_not_cover_what_is_open_still_in_another_partition(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka writes a transaction's end to each partition by itself; here the heartbeat's has it, the orders' not."""
    monkeypatch.setattr(topic_state, "_SETTLE_SECONDS", 0.1)
    before = two_orders(shop)
    shop.kafka.hold(shop.orders.topic, 0, 1)
    assert seconds(marks(shop)) == {"topic": shop.now, "raw": before, "lake": before}
    shop.kafka.hold(shop.orders.topic, 0, None)
    shop.carry()
    assert set(seconds(marks(shop)).values()) == {shop.now}


def test_what_is_landed_beside_an_open_transaction_keeps_the_watermark_of_before(
    shop: World, monkeypatch: pytest.MonkeyPatch
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


def test_a_heartbeat_of_the_epoch_before_is_no_watermark_of_this_one(shop: World) -> None:
    shop.order(1)
    shop.beat()
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
    shop.beat()
    assert seconds(marks(shop))["raw"] == shop.now


def without_exactly_once(shop: World, stored: int) -> None:
    """The first epoch has begun, and Connect has stored that Kafka has everything up to this LSN."""
    shop.connect.put(shop.flow.connector, {"exactly.once.support": "requested"})
    shop.connect.store(shop.flow.connector, {"lsn": stored})
    if Epochs(shop.bucket, "shop").current() is None:
        stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    assert stream_continuity.examine(shop.flow, shop.postgres, shop.kafka, shop.connect, shop.bucket) == ()


def test_without_exactly_once_a_heartbeat_counts_once_connect_has_stored_its_offset(shop: World) -> None:
    """Acknowledgements of different partitions come in any order: here the second order's is still missing."""
    shop.postgres.ensure_publication("shop_publication", TABLES)
    shop.now -= 500
    shop.order(1)
    shop.postgres.beat("sales")
    first, acknowledged = shop.now, shop.postgres.current_lsn()
    without_exactly_once(shop, acknowledged)
    shop.now += 500
    shop.streaming = False
    shop.order(2)
    shop.streaming = True
    shop.postgres.beat("sales")
    shop.carry()
    assert seconds(marks(shop)) == {"topic": first, "raw": first, "lake": first}
    assert fresh(shop) == {"topic": False, "raw": False, "lake": True}
    *_, manifest = table_progress.manifests(shop.bucket, shop.orders)
    assert manifest.watermark is not None
    assert manifest.watermark.source_ts_ms / 1000 == first
    without_exactly_once(shop, shop.postgres.current_lsn())
    assert seconds(marks(shop)) == {"topic": shop.now, "raw": shop.now, "lake": shop.now}


def test_the_barrier_without_exactly_once_waits_until_connect_has_stored_the_heartbeats_offset(shop: World) -> None:
    shop.connect.put(shop.flow.connector, {"exactly.once.support": "requested"})
    shop.connect.store(shop.flow.connector, {"lsn": shop.postgres.current_lsn()})
    with pytest.raises(ContractError, match=r"newest there: 1010; Connect has stored the offset of LSN 1000"):
        table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=0.2)
    looks: list[int] = []

    def stored() -> None:
        looks.append(1)
        shop.connect.store(shop.flow.connector, {"lsn": shop.postgres.current_lsn() + 100})

    found = table_progress.barrier(
        shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=5, running=stored, poll_seconds=0.1
    )
    assert looks
    assert found.lsn >= 1020


def test_a_heartbeat_that_a_snapshot_read_does_not_count(shop: World) -> None:
    for told in ("first", "true", "last", "incremental"):
        shop.beat(snapshot=told)
        assert topic_state.newest_beat(shop.kafka, shop.flow) is None
    shop.beat()
    assert topic_state.newest_beat(shop.kafka, shop.flow) is not None


def test_a_tombstone_is_no_heartbeat(shop: World) -> None:
    shop.kafka.send(HEARTBEATS, None)
    assert topic_state.newest_beat(shop.kafka, shop.flow) is None


def test_without_the_heartbeat_topic_there_is_none(shop: World) -> None:
    shop.kafka.delete_topic(HEARTBEATS)
    assert topic_state.newest_beat(shop.kafka, shop.flow) is None


def test_a_topic_made_again_does_not_move_raw_on(shop: World) -> None:
    shop.order(1)
    shop.beat()
    shop.carry()
    before = shop.now
    shop.kafka.make(shop.orders.topic)
    shop.now += 500
    shop.beat()
    assert seconds(marks(shop))["raw"] == before


def test_landing_while_one_looks_does_not_make_raw_old(shop: World) -> None:
    shop.order(1)
    shop.beat()
    early = topic_state.now(shop.kafka, shop.orders)
    shop.order(2)
    shop.land(shop.orders)
    assert table_progress.raw_watermark(shop.bucket, shop.orders, early) == early.watermark


def test_a_missing_topic_says_what_to_materialise(shop: World) -> None:
    shop.kafka.delete_topic(shop.orders.topic)
    with pytest.raises(ContractError, match=r"no topic shop\.sales\.orders yet: materialise shop/topic/orders first"):
        topic_state.now(shop.kafka, shop.orders)


def test_the_barrier_is_passed_by_its_own_heartbeat(shop: World) -> None:
    found = table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=0.5)
    assert found.lsn >= shop.postgres.current_lsn()


def test_the_barrier_waits_for_a_heartbeat_that_comes_later(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.streaming = False
    looks: list[int] = []
    real = topic_state.newest_beat

    def look(*arguments: object) -> Watermark | None:
        looks.append(1)
        if len(looks) == 3:
            shop.streaming = True
            shop.postgres.beat("sales")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(topic_state, "newest_beat", look)
    assert (
        table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=5).lsn
        == shop.postgres.current_lsn()
    )
    assert len(looks) == 3


def test_the_barrier_beats_again_for_a_stream_that_starts_later(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_progress, "_HEARTBEAT_SECONDS", 0.1)
    beats: list[int] = []

    def listen(lsn: int) -> None:
        beats.append(lsn)
        shop.streaming = len(beats) >= 2  # the one before was read by the snapshot, and is never streamed

    shop.postgres.listeners.insert(0, listen)
    shop.streaming = False
    assert table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=5).lsn == beats[1]


def test_the_barrier_of_an_epoch_is_not_passed_by_a_beat_of_the_one_before(shop: World) -> None:
    """Another server's WAL: what was streamed last has a higher LSN than anything that it will say for long."""
    shop.postgres.beat("sales")
    shop.postgres.rewind(900)
    since = Start(topic_id="t", offsets=shop.kafka.end_offsets(shop.flow.heartbeat_topic))
    shop.streaming = False
    with pytest.raises(ContractError, match="newest there: none"):
        table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=0.2, since=since)
    shop.streaming = True
    found = table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=5, since=since)
    assert found.lsn == shop.postgres.current_lsn()


def test_the_barrier_asks_whether_the_connector_runs(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_progress, "_HEARTBEAT_SECONDS", 0.1)
    shop.streaming = False

    def failed() -> None:
        raise ConnectorFailed("Connector cdc-lake-shop: task 0 FAILED.")

    with pytest.raises(ConnectorFailed):
        table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=60, running=failed)


def test_the_barrier_names_the_connector_and_what_to_do(shop: World) -> None:
    shop.beat()
    shop.streaming = False
    with pytest.raises(ContractError) as caught:
        table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=0.2)
    said = caught.value.user_message
    assert "connector cdc-lake-shop did not write the heartbeat at LSN 1010 to shop.sales.cdc_heartbeat" in said
    assert "newest there: 1001" in said
    assert "cdc-lake logs connect" in said


def test_the_barrier_says_when_nothing_was_ever_streamed(shop: World) -> None:
    shop.streaming = False
    with pytest.raises(ContractError, match="newest there: none"):
        table_progress.barrier(shop.postgres, shop.kafka, shop.connect, shop.flow, seconds=0.2)
