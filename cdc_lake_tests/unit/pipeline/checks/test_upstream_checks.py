"""Across runs: what an earlier run or a sensor found of a table decides whether what is built over it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest

from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs
from cdc_lake.pipeline import component
from cdc_lake.pipeline.checks import all_checks, tiers
from cdc_lake.pipeline.checks.upstream_checks import upstream_of
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import QUIET, bound

ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's state, which runs share."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


class Runs:
    """Runs of the shop's jobs, one after another, on one instance."""

    def __init__(self, shop: World, instance: dg.DagsterInstance) -> None:
        built = component.build(shop.flow)
        self._definitions = dg.Definitions(
            assets=built.assets, asset_checks=built.asset_checks, jobs=built.jobs, resources=bound(**shop.resources)
        )
        self._shop, self._instance = shop, instance

    def refresh(self) -> str:
        """A run of datasets and dashboards: why it failed, empty where it did not."""
        job = self._definitions.resolve_job_def("shop_refresh")
        result = job.execute_in_process(instance=self._instance, raise_on_error=False, run_config=QUIET)
        causes = [event.step_failure_data.error.cause for event in result.all_events if event.is_step_failure]
        return "; ".join(cause.message for cause in causes if cause)

    def apply(self) -> None:
        """A run that applies what is landed, which puts the tables into the catalog."""
        self._definitions.resolve_job_def("shop_apply").execute_in_process(instance=self._instance, run_config=QUIET)

    def checks(self, *names: str) -> bool:
        """A run of the scheduled checks of the orders' table; whether it ended well."""
        keys = [dg.AssetCheckKey(self._shop.orders.key("lake"), name) for name in names]
        job = self._definitions.resolve_job_def("shop_checks").get_subset(asset_check_selection=set(keys))
        return bool(job.execute_in_process(instance=self._instance, run_config=QUIET).success)


@pytest.fixture
def runs(shop: World, instance: dg.DagsterInstance) -> Runs:
    """Two orders of a customer are in the lake."""
    shop.customer("ANNE")
    shop.order(1)
    shop.order(2)
    for table in shop.flow.tables:
        shop.land(table)
    made = Runs(shop, instance)
    made.apply()
    return made


def rows(shop: World, *ids: int) -> None:
    """The lake table of the orders has these rows."""
    columns = ["order_id", "customer_id", "total", "__deleted", "_hoodie_file_name"]
    shop.athena.sql.make("shop_lake", "orders", columns, [(n, "ANNE", "1.50", False, "newest.parquet") for n in ids])


def reported(instance: dg.DagsterInstance, key: dg.AssetKey, name: str, *, passed: bool, severity: object) -> None:
    """A check is evaluated outside of a run, as the watch sensor does."""
    found = dg.AssetCheckEvaluation(
        asset_key=key, check_name=name, passed=passed, severity=severity, description="3 of 4 rows"
    )
    instance.report_runless_asset_event(found)


def test_nothing_is_built_while_a_check_of_another_run_failed(shop: World, runs: Runs) -> None:
    assert runs.refresh() == ""
    rows(shop, 1, 1)
    assert runs.checks("keys_unique"), "a failed check is not a failed run, which its schedule would launch again"
    said = runs.refresh()
    assert "Cannot build dataset totals: check keys_unique of shop/lake/orders failed at 20" in said
    assert "fix the cause, and run the check again there; this error ends when the check passes" in said
    rows(shop, 1, 2)
    runs.checks("keys_unique")
    assert runs.refresh() == ""


def test_a_warning_refuses_nothing(shop: World, runs: Runs, instance: dg.DagsterInstance) -> None:
    """Not comparable now: changes are on their way."""
    reported(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=WARN)
    assert runs.refresh() == ""
    reported(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=ERROR)
    assert "check equals_source of shop/lake/orders failed" in runs.refresh()
    reported(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=WARN)
    assert runs.refresh() == ""


def test_a_result_that_compared_nothing_refuses_nothing(shop: World, runs: Runs, instance: dg.DagsterInstance) -> None:
    """A key that changes faster than the lake follows, or a source that cannot be reached."""
    found = dg.AssetCheckEvaluation(
        asset_key=shop.orders.key("lake"),
        check_name="equals_source",
        passed=False,
        severity=ERROR,
        metadata=tiers.LATENESS,
    )
    instance.report_runless_asset_event(found)
    assert runs.refresh() == ""


def test_a_resnapshot_lifts_the_results_of_before(shop: World, runs: Runs, instance: dg.DagsterInstance) -> None:
    reported(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=ERROR)
    assert "equals_source" in runs.refresh()
    now = datetime.now(UTC)
    epochs = Epochs(shop.bucket, shop.flow.name)
    epoch = Epoch(
        number=0, pipeline=shop.flow.name, reason="", began_at=now, system_identifier="", timeline=1, slot="", lsn=1
    )
    epochs.begin(epoch)
    assert "equals_source" in runs.refresh(), "its snapshot is not in the lake yet"
    epochs.complete(0, Completion(snapshot_lsn=None, completed_at=now))
    assert runs.refresh() == ""
    reported(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=ERROR)
    assert "equals_source" in runs.refresh()


def test_what_the_check_said_is_passed_on(shop: World, runs: Runs, instance: dg.DagsterInstance) -> None:
    reported(instance, shop.orders.key("source"), "orders_have_customers", passed=False, severity=ERROR)
    assert "UTC (3 of 4 rows). Look at" in runs.refresh()


def test_the_results_of_a_dataset_concern_its_dashboards_alone(shop: World) -> None:
    made = tiers.of_content(all_checks.build(shop.flow))
    totals = dg.AssetCheckKey(shop.flow.key("dataset", "totals"), "totals_equal_source")
    assert totals in upstream_of("dashboard", made)
    assert totals not in upstream_of("dataset", made)
