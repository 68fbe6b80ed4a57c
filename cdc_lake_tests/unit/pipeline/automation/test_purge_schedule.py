"""The purge as a job: for pipelines that ask for hard deletes, once a day."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from cdc_lake.jobs.maintenance import purge
from cdc_lake.pipeline import component
from cdc_lake.pipeline.automation import purge_schedule
from cdc_lake.pipeline.loading import load
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import QUIET, bound
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.shop_pipeline import YAML, write_shop

HARD = YAML.replace("key: [order_id]\n", "key: [order_id]\n      deletes: hard\n")


def test_soft_deletes_need_none(shop: World) -> None:
    assert purge_schedule.jobs(shop.flow) == []
    assert purge_schedule.schedules(shop.flow) == []


def test_hard_deletes_are_purged_daily_of_the_tables_that_ask(shop: World, tmp_path: Path) -> None:
    write_shop(tmp_path / "hard", HARD)
    flow = load("shop", tmp_path / "hard")
    asked: list[purge.PurgeSpec] = []

    def purged(spec: purge.PurgeSpec) -> purge.PurgeReport:
        asked.append(spec)
        return purge.PurgeReport("20260101", 7, "000000-1-00000000000000000099", 0.5)

    built = component.build(flow)
    [schedule] = built.schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert (schedule.name, schedule.job_name) == ("shop_purge_daily", "shop_purge")
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
    made = dg.Definitions(
        jobs=built.jobs,
        assets=built.assets,
        asset_checks=built.asset_checks,
        resources=bound(**{**shop.resources, "spark": FakeSpark({purge.run: purged})}),
    )
    with dg.DagsterInstance.ephemeral() as instance:
        done = made.resolve_job_def("shop_purge").execute_in_process(instance=instance, run_config=QUIET)
        observed = instance.fetch_observations(flow.tables[0].key("lake"), limit=1).records
    assert done.success
    assert [(spec.table.table, spec.window_seconds) for spec in asked] == [("orders", 12 * 3600)]
    assert observed[0].asset_observation is not None
    assert observed[0].asset_observation.metadata["purged"].value == 7
