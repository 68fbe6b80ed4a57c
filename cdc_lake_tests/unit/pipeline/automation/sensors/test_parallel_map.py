"""A tick handles tables and checks in parallel: an error, an outage, or a subject that takes too long."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.epochs import Completion, Epochs
from cdc_lake.pipeline.automation.sensors import parallel_map
from cdc_lake.pipeline.automation.sensors.parallel_map import MAX_THREADS, NotInTime, map_parallel
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Daemon, orders
from resources.errors import LeaderMoving, TopicMissing, Unreachable

WAIT_SECONDS = 20
OUTAGE = Unreachable("Cannot reach Kafka.", "Run `cdc-lake up`.")


@pytest.fixture
def begun(shop: Shop) -> Shop:
    """The shop with a connector, after its first snapshot."""
    shop.connect.put(shop.pipeline.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    return shop


def test_subjects_are_handled_in_parallel_and_their_results_are_in_order() -> None:
    together = threading.Barrier(MAX_THREADS)

    def find(number: int) -> int:
        together.wait(WAIT_SECONDS)
        if number == 3:
            raise KeyError(number)
        return number

    found = map_parallel(range(MAX_THREADS), find)
    assert isinstance(found[3], KeyError)
    assert [each for each in found if not isinstance(each, Exception)] == [0, 1, 2, 4, 5, 6, 7]


def test_a_subject_that_takes_too_long_does_not_delay_the_tick() -> None:
    never = threading.Event()

    def find(number: int) -> int:
        if number == 0:
            never.wait(WAIT_SECONDS)
        return number

    started = time.monotonic()
    found = map_parallel((0, 1), find, seconds=0.3)
    assert time.monotonic() - started < WAIT_SECONDS / 2
    never.set()
    assert isinstance(found[0], NotInTime)
    assert found[1] == 1


def test_a_fatal_error_is_raised_without_waiting_for_the_others() -> None:
    never = threading.Event()

    def find(number: int) -> None:
        if number == 1:
            raise OUTAGE
        never.wait(WAIT_SECONDS)

    started = time.monotonic()
    with pytest.raises(Unreachable):
        map_parallel((0, 1), find, fatal=lambda error: error is OUTAGE)
    assert time.monotonic() - started < WAIT_SECONDS / 2
    never.set()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ContractError("The topic is lost. Run `cdc-lake resnapshot shop`."), "The topic is lost. Run `cdc-lake"),
        (TopicMissing("There is no topic.", "Materialise it."), "There is no topic. Materialise it."),
        (LeaderMoving("Kafka is electing a leader.", "Wait."), "Kafka is electing a leader. Wait."),
        (KeyError("x"), "Cannot find the pending runs of table customers: KeyError('x')"),
    ],
    ids=["contract", "resource", "one_partition", "unexpected"],
)
def test_the_error_of_one_table_does_not_stop_the_others(
    shop: Shop, land: Daemon, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    orders(shop, 5)
    end_offsets = shop.kafka.end_offsets

    def one_fails(topic: str) -> dict[int, int]:
        if topic == shop.customers.topic:
            raise error
        return end_offsets(topic)

    monkeypatch.setattr(type(shop.kafka), "end_offsets", lambda _self, topic: one_fails(topic))
    assert land.request().asset_selection == (shop.orders.key("raw"), shop.orders.key("lake"))
    shop.land(shop.orders)
    assert land.skip("customers").startswith(reason)


@pytest.mark.parametrize("error", [OUTAGE, KeyError("x")], ids=["outage", "unexpected"])
def test_an_error_of_all_tables_fails_the_tick(
    shop: Shop, land: Daemon, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    orders(shop, 5)

    def fails(_self: object, _topic: str) -> dict[int, int]:
        raise error

    monkeypatch.setattr(type(shop.kafka), "end_offsets", fails)
    with pytest.raises(type(error)):
        land.tick()


def test_an_open_transaction_does_not_delay_the_landing_sensor(
    shop: Shop, land: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committed records are landed as they are; only a watermark needs the end of the transaction."""
    orders(shop, 6)
    shop.kafka.hold(shop.orders.topic, 0, 5)
    monkeypatch.setattr("cdc_lake.pipeline.source_health.topic_state.settled_ends", None)
    assert land.request().asset_selection == (shop.orders.key("raw"), shop.orders.key("lake"))


def test_a_check_that_raises_any_error_fails_alone(
    begun: Shop, health: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fails(_self: object, _name: str) -> None:
        raise KeyError("tasks")

    monkeypatch.setattr(type(begun.connect), "status", fails)
    found = health.tick()
    assert isinstance(found, dg.SensorResult)
    events = [each for each in found.asset_events if isinstance(each, dg.AssetCheckEvaluation)]
    broken = [each for each in events if each.check_name == "connector_running"]
    assert len(broken) == 2
    for each in broken:
        assert not each.passed
        assert str(each.description).startswith("Cannot evaluate ")
        assert str(each.description).endswith("connector_running: KeyError('tasks')")
    assert any(each.passed for each in events)


def test_a_check_that_takes_too_long_keeps_its_result(
    begun: Shop, health: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    monkeypatch.setattr(type(begun.connect), "status", lambda _self, _name: never.wait(WAIT_SECONDS))
    monkeypatch.setattr(parallel_map, "TICK_SECONDS", 0.3)
    found = health.tick()
    never.set()
    assert isinstance(found, dg.SensorResult)
    names = [each.check_name for each in found.asset_events if isinstance(each, dg.AssetCheckEvaluation)]
    assert "connector_running" not in names
    assert "slot_healthy" in names
    assert "2 not evaluated in time" in str(found.skip_reason)
