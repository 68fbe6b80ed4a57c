"""Tables of a run are materialised at once; one that fails, or that must not start yet, does not affect the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land as landing
from cdc_lake.pipeline import component
from cdc_lake_tests.fakes.dagster import QUIET, bound
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

WAIT_SECONDS = 20


class Together:
    """Runs a job only when the jobs of two tables run at the same time; raises BrokenBarrierError otherwise."""

    def __init__(self, job: Callable[[Any], Any]) -> None:
        self._job = job
        self._barrier = threading.Barrier(2)
        self.tables: list[str] = []

    def __call__(self, spec: Any) -> Any:  # noqa: ANN401 - the specs of two jobs
        self.tables.append(spec.topic)
        self._barrier.wait(WAIT_SECONDS)
        return self._job(spec)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


@pytest.fixture
def two_tables(shop: Shop) -> Shop:
    """The shop with records of both tables to land."""
    shop.order(1)
    shop.customer("ANNE")
    shop.write_heartbeat()
    return shop


def run(shop: Shop, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    """Run the land job for all tables, with its light checks."""
    built = component.build(shop.flow)
    definitions = dg.Definitions.merge(
        built, dg.Definitions(resources=bound(**shop.resources), executor=dg.in_process_executor)
    )
    job = definitions.resolve_job_def("shop_land")
    return job.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET)


def materialised(result: dg.ExecuteInProcessResult) -> set[str]:
    events = result.get_asset_materialization_events()
    return {"/".join(event.asset_key.path[1:]) for event in events if event.asset_key}


ALL = {"raw/orders_raw", "raw/customers_raw", "lake/orders_lake", "lake/customers_lake"}


def test_all_tables_are_landed_and_applied_at_once(two_tables: Shop, instance: dg.DagsterInstance) -> None:
    jobs = two_tables.spark.jobs
    jobs[landing.run], jobs[upsert.run] = Together(two_tables.land_by), Together(two_tables.apply_by)
    result = run(two_tables, instance)
    assert result.success
    assert materialised(result) == ALL


def test_a_table_that_fails_does_not_stop_the_others(two_tables: Shop, instance: dg.DagsterInstance) -> None:
    def apply(spec: upsert.UpsertSpec) -> upsert.UpsertReport:
        if spec.table == "orders":
            raise OSError("no space left")
        return two_tables.apply_by(spec)

    two_tables.spark.jobs[upsert.run] = apply
    result = run(two_tables, instance)
    assert materialised(result) == ALL - {"lake/orders_lake"}
    [failure] = [event for event in result.all_events if event.is_step_failure]
    assert "orders_lake" in str(failure.step_key)
    assert failure.step_failure_data.error is not None
    assert "no space left" in failure.step_failure_data.error.to_string()


def test_a_table_with_a_failed_blocking_check_is_not_applied(two_tables: Shop, instance: dg.DagsterInstance) -> None:
    def land(spec: landing.LandSpec) -> landing.LandReport:
        report = two_tables.land_by(spec)
        if spec.topic == two_tables.orders.topic:
            head = Chain(two_tables.bucket, "shop", spec.topic).head()
            assert head is not None
            two_tables.bucket.delete([head.objects[0].key])
        return report

    applied = Together(two_tables.apply_by)
    applied._barrier = threading.Barrier(1)
    two_tables.spark.jobs |= {landing.run: land, upsert.run: applied}
    result = run(two_tables, instance)
    assert materialised(result) == ALL - {"lake/orders_lake"}
    assert applied.tables == [two_tables.customers.topic]


def test_an_interrupted_run_cancels_the_jobs_of_all_tables(
    two_tables: Shop, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = threading.Event()

    def never(_spec: object) -> None:
        assert cancelled.wait(WAIT_SECONDS), "nothing cancelled this job"
        raise OSError("cancelled")

    def interrupted(_future: object) -> None:
        raise KeyboardInterrupt

    two_tables.spark.jobs[landing.run] = never
    monkeypatch.setattr(two_tables.spark, "cancel", cancelled.set)
    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    assert not run(two_tables, instance).success
    assert cancelled.is_set()
