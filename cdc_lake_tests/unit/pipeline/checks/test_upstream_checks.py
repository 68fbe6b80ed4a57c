"""Failed checks of a table, from an earlier run or a sensor, block the assets that depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest

from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs
from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline import component
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.checks.upstream_checks import upstream_of
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """The Dagster instance that all runs share."""
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


class Runs:
    """Runs the shop's jobs on one instance."""

    def __init__(self, shop: Shop, instance: dg.DagsterInstance) -> None:
        built = component.build(shop.pipeline)
        self._definitions = dg.Definitions(
            assets=built.assets,
            asset_checks=built.asset_checks,
            jobs=built.jobs,
            resources=fake_resources(**shop.resources),
        )
        self._shop, self._instance = shop, instance

    def refresh(self) -> str:
        """Run datasets and dashboards; return the causes of a failure, or an empty string."""
        job = self._definitions.resolve_job_def("shop_refresh")
        result = job.execute_in_process(instance=self._instance, raise_on_error=False, run_config=QUIET)
        causes = [event.step_failure_data.error.cause for event in result.all_events if event.is_step_failure]
        return "; ".join(cause.message for cause in causes if cause)

    def apply(self) -> None:
        """Apply the landed records, which also registers the tables in the catalog."""
        self._definitions.resolve_job_def("shop_apply").execute_in_process(instance=self._instance, run_config=QUIET)

    def checks(self, *names: str) -> bool:
        """Run these scheduled checks of the orders' table; return whether the run succeeded."""
        keys = [dg.AssetCheckKey(self._shop.orders.key("lake"), name) for name in names]
        job = self._definitions.resolve_job_def("shop_checks").get_subset(asset_check_selection=set(keys))
        return bool(job.execute_in_process(instance=self._instance, run_config=QUIET).success)


@pytest.fixture
def runs(shop: Shop, instance: dg.DagsterInstance) -> Runs:
    """Runs of the shop, with two orders of one customer in the lake."""
    shop.customer("ANNE")
    shop.order(1)
    shop.order(2)
    for table in shop.pipeline.tables:
        shop.land(table)
    shop_runs = Runs(shop, instance)
    shop_runs.apply()
    return shop_runs


def replace_lake_rows(shop: Shop, *ids: int) -> None:
    """Replace the rows of the orders' lake table."""
    columns = ["order_id", "customer_id", "total", "__deleted", "_hoodie_file_name"]
    shop.athena.sql.make("shop_lake", "orders", columns, [(n, "ANNE", "1.50", False, "newest.parquet") for n in ids])


def report(
    instance: dg.DagsterInstance, key: dg.AssetKey, name: str, *, passed: bool, severity: dg.AssetCheckSeverity
) -> None:
    """Report a check's evaluation outside of a run, as the watch sensor does."""
    found = dg.AssetCheckEvaluation(
        asset_key=key, check_name=name, passed=passed, severity=severity, description="3 of 4 rows"
    )
    instance.report_runless_asset_event(found)


def test_a_failed_check_of_another_run_blocks_the_refresh_until_it_passes(shop: Shop, runs: Runs) -> None:
    assert runs.refresh() == ""
    replace_lake_rows(shop, 1, 1)
    assert runs.checks("keys_unique"), "a failed check must not fail the run, since the schedule would retry it"
    message = runs.refresh()
    assert "Cannot build dataset totals: check keys_unique of shop/lake/orders_lake failed at 20" in message
    assert "fix the cause, and run the check again there; this error ends when the check passes" in message
    replace_lake_rows(shop, 1, 2)
    runs.checks("keys_unique")
    assert runs.refresh() == ""


def test_a_warning_does_not_block(shop: Shop, runs: Runs, instance: dg.DagsterInstance) -> None:
    """A warning means: not comparable now, because changes are not applied yet."""
    report(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=WARN)
    assert runs.refresh() == ""
    report(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=ERROR)
    assert "check equals_source of shop/lake/orders_lake failed" in runs.refresh()
    report(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=WARN)
    assert runs.refresh() == ""


def test_a_failure_with_lateness_metadata_does_not_block(shop: Shop, runs: Runs, instance: dg.DagsterInstance) -> None:
    """Such as a key that changes faster than the lake follows, or an unreachable source."""
    found = dg.AssetCheckEvaluation(
        asset_key=shop.orders.key("lake"),
        check_name="equals_source",
        passed=False,
        severity=ERROR,
        metadata=tiers.LATENESS,
    )
    instance.report_runless_asset_event(found)
    assert runs.refresh() == ""


def test_a_completed_resnapshot_clears_earlier_results(shop: Shop, runs: Runs, instance: dg.DagsterInstance) -> None:
    report(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=ERROR)
    assert "equals_source" in runs.refresh()
    now = datetime.now(UTC)
    epochs = Epochs(shop.bucket, shop.pipeline.name)
    epoch = Epoch(
        number=0, pipeline=shop.pipeline.name, reason="", began_at=now, system_identifier="", timeline=1, slot="", lsn=1
    )
    epochs.begin(epoch)
    assert "equals_source" in runs.refresh(), "its snapshot is not in the lake yet"
    epochs.complete(0, Completion(snapshot_lsn=None, completed_at=now))
    assert runs.refresh() == ""
    report(instance, shop.orders.key("lake"), "equals_source", passed=False, severity=ERROR)
    assert "equals_source" in runs.refresh()


def test_the_message_contains_the_description_of_the_check(
    shop: Shop, runs: Runs, instance: dg.DagsterInstance
) -> None:
    report(instance, shop.orders.key("source"), "orders_have_customers", passed=False, severity=ERROR)
    assert "UTC (3 of 4 rows). Read" in runs.refresh()


def test_checks_of_a_dataset_block_only_its_dashboards(shop: Shop) -> None:
    checks = tiers.correctness(pipeline_checks.build(shop.pipeline))
    totals = dg.AssetCheckKey(shop.pipeline.key("dataset", "totals"), "totals_equal_source")
    assert totals in upstream_of("dashboard", checks)
    assert totals not in upstream_of("dataset", checks)
