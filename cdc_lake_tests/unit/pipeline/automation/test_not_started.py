"""A published pipeline whose database is not loaded: its sensors and schedules run, and start nothing."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.pipeline import component
from cdc_lake.pipeline.loading import load, names
from cdc_lake_tests.fakes.dagster import fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.source.connect import FakeConnect
from cdc_lake_tests.fakes.source.kafka import FakeKafka
from cdc_lake_tests.helpers.memory_store import MemoryStore


class MissingDatabase:
    """A server without the pipeline's database: any use is an error."""

    def model_copy(self, **_: object) -> MissingDatabase:
        """See Postgres."""
        return self

    def connect(self) -> object:
        """Fail, since the database does not exist."""
        raise AssertionError("a sensor connects to a database that does not exist")

    write_heartbeat = replica_identity = slot = truncatable = connect


@pytest.mark.parametrize("pipeline", names())
def test_nothing_is_started_before_the_first_materialisation(
    pipeline: str, shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = MemoryStore()
    monkeypatch.setattr(S3Location, "store", lambda _self: store)
    resources = {
        **shop.resources,
        "postgres": MissingDatabase(),
        "kafka": FakeKafka(),
        "connect": FakeConnect(),
    }
    definitions = dg.Definitions.merge(
        component.build(load(pipeline)), dg.Definitions(resources=fake_resources(**resources))
    ).get_repository_def()
    assert definitions.sensor_defs
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for sensor in definitions.sensor_defs:
            assert sensor.default_status == dg.DefaultSensorStatus.RUNNING
            needed = fake_resources(**{name: resources[name] for name in sensor.required_resource_keys})
            with dg.build_sensor_context(instance, resources=needed, sensor_name=sensor.name) as context:
                tick = sensor.evaluate_tick(context)
            assert (tick.run_requests, tick.asset_events) == ([], []), sensor.name
            assert tick.skip_message, sensor.name
        for schedule in definitions.schedule_defs:
            with dg.build_schedule_context(instance) as schedule_context:
                result = schedule.evaluate_tick(schedule_context)
            assert not result.run_requests, schedule.name
            assert result.skip_message, schedule.name
