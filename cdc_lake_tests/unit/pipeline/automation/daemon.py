"""Daemon evaluates a sensor as Dagster's daemon does; Clock is the time that tests set."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

import dagster as dg
from dagster._core.test_utils import create_run_for_test

from cdc_lake.contract.table import timeline
from cdc_lake.pipeline import component
from cdc_lake_tests.fakes.dagster import fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


@dataclass
class Clock:
    """The sensors' time: the real time plus what the test adds."""

    ahead: float = 0.0
    base: float | None = None
    """A fixed time in seconds since 1970, or None for the real time."""

    def time(self) -> float:
        """Return the time in seconds since 1970."""
        return (time.time() if self.base is None else self.base) + self.ahead

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.ahead += seconds


@dataclass
class Daemon:
    """Evaluates one sensor repeatedly and keeps its cursor. RunRequests runs do not start by themselves."""

    shop: Shop
    sensor: dg.SensorDefinition
    instance: dg.DagsterInstance
    clock: Clock
    cursor: str | None = None
    keys: list[str] = field(default_factory=list)

    @classmethod
    def for_sensor(cls, name: str, shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
        """Create a daemon for the shop's sensor of this name."""
        [found] = [each for each in component.build(shop.pipeline).sensors or () if each.name == name]
        assert isinstance(found, dg.SensorDefinition)
        return cls(shop, found, instance, clock)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        """Evaluate the sensor once."""
        fakes = fake_resources(**{name: value for name, value in self.shop.resources.items() if name != "spark"})
        required = {name: fakes[name] for name in self.sensor.required_resource_keys}
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources=required, sensor_name=self.sensor.name
        ) as context:
            found = self.sensor(context)
            self.cursor = context.cursor
        assert isinstance(found, dg.SensorResult | dg.SkipReason)
        return found

    def request(self) -> dg.RunRequest:
        """Return the request of a tick that must launch, with a new run key (Dagster launches each key once)."""
        found = self.tick()
        assert isinstance(found, dg.SensorResult), found
        assert found.run_requests is not None
        [request] = found.run_requests
        assert request.run_key is not None
        assert request.run_key not in self.keys
        self.keys.append(request.run_key)
        return request

    def skip(self, table: str = "orders") -> str:
        """Return the reason of a tick that must not launch, or the part of it that concerns the table."""
        found = self.tick()
        assert isinstance(found, dg.SkipReason), found
        message = found.skip_message or ""
        reasons = (part.partition(": ") for part in re.split(r"; (?=\w+(?:, \w+)*: )", message))
        return next((reason for subjects, _, reason in reasons if table in subjects.split(", ")), message)

    def run(self, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> dg.DagsterRun:
        """Return the run, in this state, of a tick that must launch."""
        run: dg.DagsterRun = create_run_for_test(self.instance, status=status, tags=dict(self.request().tags))
        return run

    def fail(self) -> dg.DagsterRun:
        """Return the run of a tick that must launch; the run fails at once."""
        run = self.run()
        self.instance.report_run_failed(run)
        # Dagster stores the run's end with the real time; the clock continues from there.
        record = self.instance.get_run_record_by_id(run.run_id)
        assert record is not None
        self.clock.base, self.clock.ahead = record.end_time, 0.0
        return run


def report_commits(shop: Shop, instance: dg.DagsterInstance) -> None:
    """Report the newest commit of each lake table as a materialisation, as the lake asset does."""
    for table in shop.pipeline.tables:
        commit = timeline.last_commit(shop.bucket, table.lake_prefix)
        if commit is not None:
            instance.report_runless_asset_event(
                dg.AssetMaterialization(table.key("lake"), metadata={"instant": commit.instant})
            )


def orders(shop: Shop, count: int, first: int = 1) -> None:
    """Create `count` orders."""
    for number in range(first, first + count):
        shop.order(number)
