"""Tables of a run are materialised at once; one that fails, or that must not start yet, does not affect the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import create_execution_plan, execute_plan

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.pipeline import component
from cdc_lake.pipeline.assets import raw
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

WAIT_SECONDS = 20
pytestmark = pytest.mark.usefixtures("landings_by_spark")


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
    return land_job(shop).execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET)


def land_job(shop: Shop) -> dg.JobDefinition:
    """Return the job that lands and applies all tables."""
    built = component.build(shop.pipeline)
    definitions = dg.Definitions.merge(
        built, dg.Definitions(resources=fake_resources(**shop.resources), executor=dg.in_process_executor)
    )
    return definitions.resolve_job_def("shop_land")


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
    def apply(spec: UpsertSpec) -> upsert.UpsertReport:
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
    def land(spec: LandSpec) -> landing.LandReport:
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


class Interrupted:
    """A run that is interrupted when its first table is landed and its second one is not.

    The second table's job runs until Spark's jobs are cancelled twice, as a job that had begun its next Spark job.
    """

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        self._shop = shop
        self._running = threading.Event()
        self._cancellations = threading.Semaphore(0)
        self.steps: list[str] = []
        self.cancelled = False
        shop.spark.jobs[landing.run] = self._land
        monkeypatch.setattr(shop.spark, "cancel", self._cancellations.release)
        monkeypatch.setattr(raw, "warm_spark", lambda _context, table, _spark: self.begin(table.topic))

    def begin(self, topic: str) -> None:
        """Begin the step of a table's topic."""
        self.steps.append(topic)

    def _land(self, spec: LandSpec) -> landing.LandReport:
        if spec.topic == self.steps[0]:
            assert self._running.wait(WAIT_SECONDS)
            return self._shop.land_by(spec)
        self._running.set()
        self.cancelled = all(self._cancellations.acquire(timeout=WAIT_SECONDS) for _ in range(2))
        raise OSError("cancelled")


@pytest.mark.parametrize("place", ["the wait for a table", "the beginning of the next step"])
def test_an_interrupted_run_cancels_the_jobs_of_all_tables(
    two_tables: Shop, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    interrupted = Interrupted(two_tables, monkeypatch)
    result, begin = Future.result, interrupted.begin

    def wait(future: Future[Any], timeout: float | None = None) -> Any:  # noqa: ANN401 - any result
        if threading.current_thread() is threading.main_thread() and len(interrupted.steps) == 2:
            raise KeyboardInterrupt
        return result(future, timeout)

    def begin_or_stop(topic: str) -> None:
        begin(topic)
        if len(interrupted.steps) == 2:
            raise KeyboardInterrupt

    if place == "the wait for a table":
        monkeypatch.setattr(Future, "result", wait)
    else:
        monkeypatch.setattr(interrupted, "begin", begin_or_stop)
    assert not run(two_tables, instance).success
    assert len(interrupted.steps) == 2
    assert interrupted.cancelled
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("table")]


def test_a_process_of_one_step_materialises_its_own_table_only(two_tables: Shop, instance: dg.DagsterInstance) -> None:
    """As with Dagster's multiprocess executor, whose processes execute a plan of one step."""
    landed = []

    def land(spec: LandSpec) -> landing.LandReport:
        landed.append(spec.topic)
        return two_tables.land_by(spec)

    two_tables.spark.jobs[landing.run] = land
    job = land_job(two_tables)
    step = two_tables.orders.key("raw").to_python_identifier()
    dagster_run = instance.create_run_for_job(job, run_config=QUIET)
    plan = create_execution_plan(job, QUIET, step_keys_to_execute=[step])
    events = execute_plan(plan, InMemoryJob(job), instance, dagster_run, QUIET)
    assert [event.step_key for event in events if event.is_step_success] == [step]
    assert landed == [two_tables.orders.topic]
