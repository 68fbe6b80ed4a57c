"""The sensors: when they launch, when they wait, and what they do after failures. Time is turned by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from cdc_lake.pipeline import launch, sensors
from cdc_lake_tests.fakes import bound
from cdc_lake_tests.world import World

STARTED, CANCELING = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING


@dataclass
class Clock:
    """The sensors' time: the real one, and what the test adds to it."""

    ahead: float = 0.0

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time() + self.ahead

    def go(self, seconds: float) -> None:
        """Some time passes."""
        self.ahead += seconds


@dataclass
class Daemon:
    """Evaluates one sensor again and again, with its cursor kept; what it requests doesn't start by itself."""

    shop: World
    sensor: dg.SensorDefinition
    instance: dg.DagsterInstance
    clock: Clock
    cursor: str | None = None
    keys: list[str] = field(default_factory=list)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        """One evaluation."""
        fakes = bound(kafka=self.shop.kafka, store=self.shop.store, connect=self.shop.connect)
        wanted = {name: fakes[name] for name in self.sensor.required_resource_keys}
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources=wanted, sensor_name=self.sensor.name
        ) as context:
            found = self.sensor(context)
            self.cursor = context.cursor
        assert isinstance(found, dg.SensorResult | dg.SkipReason)
        return found

    def request(self) -> dg.RunRequest:
        """A tick that has to launch, with a run key that is new: Dagster launches none twice."""
        found = self.tick()
        assert isinstance(found, dg.SensorResult), found
        assert found.run_requests is not None
        [request] = found.run_requests
        assert request.run_key is not None
        assert request.run_key not in self.keys
        self.keys.append(request.run_key)
        return request

    def skip(self) -> str:
        """A tick that must not launch; why."""
        found = self.tick()
        assert isinstance(found, dg.SkipReason), found
        return found.skip_message or ""

    def run(self, status: dg.DagsterRunStatus = STARTED) -> dg.DagsterRun:
        """A tick that has to launch, and the run of its request, in that state."""
        made: dg.DagsterRun = create_run_for_test(self.instance, status=status, tags=dict(self.request().tags))
        return made

    def fail(self) -> dg.DagsterRun:
        """A tick that has to launch, and its run, which fails at once."""
        run = self.run()
        self.clock.ahead = 0  # the run's end is noted with the real time
        self.instance.report_run_failed(run)
        return run


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's state, in memory."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The sensors' clock."""
    made = Clock()
    for module in (sensors, launch):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=made.time))
    return made


def daemon(shop: World, name: str, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The sensor of that name, evaluated."""
    [found] = [each for each in sensors.build(shop.flow) if each.name == name]
    return Daemon(shop, found, instance, clock)


@pytest.fixture
def land(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The orders' landing sensor: it flushes at 5 records or after 30 s."""
    return daemon(shop, "shop_orders_land", instance, clock)


@pytest.fixture
def apply(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The orders' applying sensor."""
    return daemon(shop, "shop_orders_apply", instance, clock)


@pytest.fixture
def connector(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The connector's sensor."""
    return daemon(shop, "shop_connector", instance, clock)


def orders(shop: World, count: int, first: int = 1) -> None:
    """So many new orders."""
    for number in range(first, first + count):
        shop.order(number)


def test_nothing_to_land(shop: World, land: Daemon) -> None:
    assert land.skip() == "everything is landed"
    orders(shop, 1)
    shop.land(shop.orders)
    assert land.skip() == "everything is landed"


def test_no_topic_yet(shop: World, land: Daemon) -> None:
    shop.kafka.delete_topic(shop.orders.topic)
    assert "materialise shop/topic/orders first" in land.skip()


def test_flush_records(shop: World, land: Daemon) -> None:
    orders(shop, 4)
    assert land.skip() == "4 offsets wait since 0 s"
    orders(shop, 1, first=5)
    request = land.request()
    assert request.run_key == "land:shop.sales.orders:id-1:after-manifest-0:0"
    assert request.tags["cdc_lake/pipeline"] == "shop"


def test_flush_seconds(shop: World, land: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    land.skip()
    clock.go(29)
    assert land.skip() == "1 offsets wait since 29 s"
    clock.go(1)
    land.request()


def test_the_waiting_starts_anew_after_each_landing(shop: World, land: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    land.skip()
    clock.go(29)
    shop.land(shop.orders)
    orders(shop, 1, first=2)
    assert land.skip() == "1 offsets wait since 0 s"
    clock.go(29)
    land.skip()
    clock.go(1)
    land.request()


def test_one_landing_at_a_time(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    run = land.run()
    orders(shop, 5, first=6)
    assert land.skip() == f"run {run.run_id} of this sensor is under way"


@pytest.mark.parametrize("status", ["NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
def test_what_counts_as_under_way(shop: World, land: Daemon, status: str) -> None:
    orders(shop, 5)
    land.run(dg.DagsterRunStatus[status])
    assert "is under way" in land.skip()


def test_other_sensors_runs_do_not_count(shop: World, land: Daemon, apply: Daemon) -> None:
    orders(shop, 5)
    shop.land(shop.orders)
    apply.run()
    orders(shop, 5, first=6)
    land.request()


def test_a_failed_run_is_requested_again_after_a_pause_that_grows(shop: World, land: Daemon, clock: Clock) -> None:
    orders(shop, 5)
    for pause in (5, 15, 60, 300, 300):
        run = land.fail()
        assert f"run {run.run_id} of this sensor failed; the next one in {pause} s" in land.skip()
        clock.go(pause - 1)
        assert "failed" in land.skip()
        clock.go(1.5)
    assert [key.rpartition(":")[2] for key in land.keys] == ["0", "1", "2", "3", "4"]


def test_a_cancelled_run_is_requested_again(
    shop: World, land: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    orders(shop, 5)
    instance.report_run_canceled(land.run(CANCELING))
    clock.go(6)
    land.request()


def test_progress_forgets_failures(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    land.fail()
    shop.land(shop.orders)
    orders(shop, 5, first=6)
    assert land.request().run_key == "land:shop.sales.orders:id-1:after-manifest-1:0"


def test_a_topic_made_again_launches_the_run_that_says_so(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    shop.land(shop.orders)
    shop.kafka.make(shop.orders.topic)
    orders(shop, 5)  # it ends where the old one did
    land.request()


def test_a_topic_that_lost_records_launches_the_run_that_says_so(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    shop.land(shop.orders)
    shop.kafka._topics[shop.orders.topic].records[0].pop()
    land.request()


def test_nothing_to_apply(shop: World, apply: Daemon) -> None:
    assert apply.skip() == "everything that is landed is applied"
    orders(shop, 1)
    assert apply.skip() == "everything that is landed is applied"


def test_new_manifests_launch_the_lake_and_what_follows(shop: World, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    assert apply.request().run_key == "apply:shop.sales.orders:id-1:manifests-1-1:0"
    shop.apply(shop.orders)
    apply.skip()
    orders(shop, 1, first=2)
    shop.land(shop.orders)
    assert apply.request().run_key == "apply:shop.sales.orders:id-1:manifests-2-2:0"


def test_a_lake_that_was_removed_is_made_again(shop: World, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    orders(shop, 1, first=2)
    shop.land(shop.orders)
    apply.request()
    shop.apply(shop.orders)
    shop.bucket.delete([item.key for item in shop.bucket.scan(shop.orders.lake_prefix)])
    apply.request()  # the newest manifest is the one of the last request


def test_one_apply_at_a_time_and_again_after_a_failure(shop: World, apply: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    apply.fail()
    assert "the next one in 5 s" in apply.skip()
    clock.go(6)
    apply.run()
    assert "is under way" in apply.skip()


def test_each_table_has_its_own_sensors(shop: World, apply: Daemon, instance: dg.DagsterInstance, clock: Clock) -> None:
    shop.customer("ANNE")
    shop.land(shop.customers)
    assert apply.skip() == "everything that is landed is applied"
    daemon(shop, "shop_customers_apply", instance, clock).request()


def test_no_connector(shop: World, connector: Daemon) -> None:
    shop.connect.delete(shop.flow.connector)
    assert connector.skip() == "there is no connector cdc-lake-shop yet"


def test_a_connector_that_runs_is_left_alone(shop: World, connector: Daemon) -> None:
    assert connector.skip() == "cdc-lake-shop is RUNNING, no task has failed"
    shop.connect.run(shop.flow.connector, "PAUSED")
    assert connector.skip() == "cdc-lake-shop is PAUSED, no task has failed"
    assert shop.connect.restarts == []


def test_a_failed_task_is_restarted_and_it_says_so(shop: World, connector: Daemon) -> None:
    shop.connect.fail(shop.flow.connector, "connection refused")
    said = connector.skip()
    assert said == (
        "restarted tasks [0] of cdc-lake-shop (task failed: connection refused); next restart not before 5 s"
    )
    assert shop.connect.restarts == ["cdc-lake-shop"]


def test_a_failed_connector_is_restarted_too(shop: World, connector: Daemon) -> None:
    shop.connect.fail(shop.flow.connector, "no such host", connector_too=True)
    assert connector.skip().startswith("restarted cdc-lake-shop (cdc-lake-shop is FAILED: no such host")


def test_restarts_wait_longer_each_time(shop: World, connector: Daemon, clock: Clock) -> None:
    shop.connect.fail(shop.flow.connector, "connection refused")
    for count, pause in enumerate((5, 15, 60, 300, 300), 1):
        connector.skip()
        assert len(shop.connect.restarts) == count
        clock.go(pause - 0.5)
        assert "next restart in" in connector.skip()
        assert len(shop.connect.restarts) == count
        clock.go(1)


def test_a_task_that_fails_soon_after_its_restart_is_waited_with(shop: World, connector: Daemon, clock: Clock) -> None:
    name = shop.flow.connector
    shop.connect.fail(name, "connection refused")
    connector.skip()
    shop.connect.run(name)
    clock.go(20)
    connector.skip()
    shop.connect.fail(name, "connection refused")
    assert "next restart not before 15 s" in connector.skip()


def test_the_pauses_start_over_after_five_minutes_of_running(shop: World, connector: Daemon, clock: Clock) -> None:
    name = shop.flow.connector
    shop.connect.fail(name, "connection refused")
    connector.skip()
    clock.go(6)
    connector.skip()
    shop.connect.run(name)
    clock.go(301)
    connector.skip()
    shop.connect.fail(name, "connection refused")
    assert "next restart not before 5 s" in connector.skip()
