"""The jobs of table services: which tables they serve, when, and what their assets report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from cdc_lake.contract.table import timeline
from cdc_lake.jobs.maintenance import clean, cluster, compact, purge
from cdc_lake.jobs.remote import job_call
from cdc_lake.pipeline import component
from cdc_lake.pipeline.assets import table_services
from cdc_lake.pipeline.automation import maintenance_schedules
from cdc_lake.pipeline.loading import load
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop

HARD = YAML.replace("database: shop_lake\n", "database: shop_lake\n      deletes: hard\n")


def materialisation(
    shop: Shop, built: dg.Definitions, job: str, sparks: Mapping[Callable[..., Any], Any], name: str
) -> dg.AssetMaterialization:
    """Run a job, which must succeed, with fakes of the Spark jobs, and return the asset's materialisation."""
    definitions = dg.Definitions(
        jobs=built.jobs,
        assets=built.assets,
        asset_checks=built.asset_checks,
        resources=fake_resources(**{**shop.resources, "spark": FakeSpark(sparks)}),
    )
    with dg.DagsterInstance.ephemeral() as instance:
        run = definitions.resolve_job_def(job).execute_in_process(instance=instance, run_config=QUIET)
    assert run.success
    [found] = [
        event.step_materialization_data.materialization
        for event in run.get_asset_materialization_events()
        if event.asset_key == dg.AssetKey(["shop", "maintenance", name])
    ]
    return found


def scheduled(built: dg.Definitions) -> dict[str, dg.ScheduleDefinition]:
    """Return the schedules by name."""
    return {each.name: each for each in built.schedules or () if isinstance(each, dg.ScheduleDefinition)}


def test_a_schedule_starts_no_run_before_a_table_is_materialised(shop: Shop, tmp_path: Path) -> None:
    write_shop(tmp_path / "hard", HARD)
    pipeline = load("shop", tmp_path / "hard")
    definitions = dg.Definitions.merge(
        component.build(pipeline), dg.Definitions(resources=fake_resources(**shop.resources))
    )
    # The repository rejects two definitions of one job.
    schedule = definitions.get_repository_def().get_schedule_def("shop_purge_daily")
    with (
        dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
        dg.build_schedule_context(instance) as context,
    ):
        assert schedule.evaluate_tick(context).skip_message == "no lake table of pipeline shop is materialised yet"
        instance.report_runless_asset_event(
            dg.AssetMaterialization(pipeline.tables[1].key("lake"), metadata={"rows": 1})
        )
        assert len(schedule.evaluate_tick(context).run_requests or ()) == 1


def test_the_job_of_each_service_can_run_on_emr() -> None:
    assert {service.job for service in table_services.SERVICES} <= set(job_call.JOBS.values())


def test_copy_on_write_with_soft_deletes_is_only_clustered_and_cleaned(shop: Shop) -> None:
    assert [job.name for job in maintenance_schedules.jobs(shop.pipeline)] == ["shop_cluster", "shop_clean"]
    names = [schedule.name for schedule in maintenance_schedules.schedules(shop.pipeline)]
    assert names == ["shop_cluster_daily", "shop_clean_daily"]


def test_tables_with_hard_deletes_are_purged_daily(shop: Shop, tmp_path: Path) -> None:
    write_shop(tmp_path / "hard", HARD)
    pipeline = load("shop", tmp_path / "hard")
    specs: list[purge.PurgeSpec] = []

    def purged(spec: purge.PurgeSpec) -> purge.PurgeReport:
        specs.append(spec)
        return purge.PurgeReport("20260101", 7, "000000-1-00000000000000000099", 0.5)

    built = component.build(pipeline)
    schedule = scheduled(built)["shop_purge_daily"]
    assert schedule.job_name == "shop_purge"
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING
    purging = materialisation(shop, built, "shop_purge", {purge.run: purged}, "orders_lake_purge")
    assert sorted((spec.table.table, spec.window_seconds) for spec in specs) == [
        ("customers", 12 * 3600),
        ("orders", 12 * 3600),
    ]
    assert purging.metadata["purged"].value == 7


def test_merge_on_read_tables_are_compacted_hourly(shop: Shop, tmp_path: Path) -> None:
    second = "shop_lake\n    - { name: log, database: shop_log, table_type: mor }\n"
    write_shop(tmp_path / "mor", YAML.replace("shop_lake\n", second))
    pipeline = load("shop", tmp_path / "mor")
    specs: list[compact.CompactSpec] = []
    commit = timeline.Commit("20260101", None, rows_written=3, inserts=0, updates=3, bytes_written=99, files_written=2)

    def compacted(spec: compact.CompactSpec) -> compact.CompactReport:
        specs.append(spec)
        return compact.CompactReport(commit if spec.table.table == "orders" else None, 0.5)

    built = component.build(pipeline)
    assert scheduled(built)["shop_compact_hourly"].job_name == "shop_compact"
    compaction = materialisation(shop, built, "shop_compact", {compact.run: compacted}, "orders_log_compact")
    assert sorted((spec.table.table, spec.table.target, spec.table.table_type) for spec in specs) == [
        ("customers", "log", "mor"),
        ("orders", "log", "mor"),
    ]
    assert compaction.metadata["bytes_rewritten"].value == 99


def test_all_tables_are_clustered_daily(shop: Shop) -> None:
    specs: list[cluster.ClusterSpec] = []
    commit = timeline.Commit("20260101", None, rows_written=3, inserts=0, updates=3, bytes_written=99, files_written=2)

    def clustered(spec: cluster.ClusterSpec) -> cluster.ClusterReport:
        specs.append(spec)
        return cluster.ClusterReport(commit if spec.table.table == "orders" else None, 0.5)

    built = component.build(shop.pipeline)
    assert scheduled(built)["shop_cluster_daily"].job_name == "shop_cluster"
    jobs = {cluster.run: clustered}
    orders = materialisation(shop, built, "shop_cluster", jobs, "orders_lake_cluster")
    assert (orders.metadata["file_slices"].value, orders.metadata["bytes_rewritten"].value) == (2, 99)
    customers = materialisation(shop, built, "shop_cluster", jobs, "customers_lake_cluster")
    assert customers.metadata["bytes_rewritten"].value == 0
    assert sorted(spec.table.table for spec in specs) == ["customers", "customers", "orders", "orders"]


def test_all_tables_are_cleaned_daily(shop: Shop) -> None:
    built = component.build(shop.pipeline)
    assert scheduled(built)["shop_clean_daily"].job_name == "shop_clean"
    jobs = {clean.run: lambda _: clean.CleanReport(3, 4096, 2, 0.5)}
    cleaning = materialisation(shop, built, "shop_clean", jobs, "orders_lake_clean")
    assert cleaning.metadata["result"].value == "3 files with 4096 bytes deleted, 2 commits archived"
    assert (cleaning.metadata["bytes_deleted"].value, cleaning.metadata["commits_archived"].value) == (4096, 2)
