"""What evaluates a sensor as Dagster's daemon does, and a clock that is turned by hand."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import dagster as dg
from dagster._core.test_utils import create_run_for_test

from cdc_lake.contract.table import timeline
from cdc_lake.pipeline import component
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import bound


@dataclass
class Clock:
    """The sensors' time: the real one, and what the test adds to it."""

    ahead: float = 0.0
    base: float | None = None
    """Where the time stands still, seconds since 1970; None for the real time."""

    def time(self) -> float:
        """Seconds since 1970."""
        return (time.time() if self.base is None else self.base) + self.ahead

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

    @classmethod
    def of(cls, name: str, shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
        """Evaluates the shop's sensor of that name."""
        [found] = [each for each in component.build(shop.flow).sensors or () if each.name == name]
        assert isinstance(found, dg.SensorDefinition)
        return cls(shop, found, instance, clock)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        """One evaluation."""
        fakes = bound(**{name: value for name, value in self.shop.resources.items() if name != "spark"})
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

    def run(self, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> dg.DagsterRun:
        """A tick that has to launch, and the run of its request, in that state."""
        made: dg.DagsterRun = create_run_for_test(self.instance, status=status, tags=dict(self.request().tags))
        return made

    def fail(self) -> dg.DagsterRun:
        """A tick that has to launch, and its run, which fails at once."""
        run = self.run()
        self.instance.report_run_failed(run)
        # Dagster stores the run's end with the real time; from there the clock goes as the test says.
        record = self.instance.get_run_record_by_id(run.run_id)
        assert record is not None
        self.clock.base, self.clock.ahead = record.end_time, 0.0
        return run


def reported(shop: World, instance: dg.DagsterInstance) -> None:
    """Materialisations report the newest commit of each lake table, as the stage does."""
    for table in shop.flow.tables:
        commit = timeline.last_commit(shop.bucket, table.lake_prefix)
        if commit is not None:
            instance.report_runless_asset_event(
                dg.AssetMaterialization(table.key("lake"), metadata={"instant": commit.instant})
            )


def orders(shop: World, count: int, first: int = 1) -> None:
    """So many new orders."""
    for number in range(first, first + count):
        shop.order(number)
