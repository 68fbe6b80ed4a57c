"""Stages, checks and ops report the jobs that they ran outside of this process."""

from __future__ import annotations

import threading
from typing import Any

import dagster as dg
import pytest

from cdc_lake.pipeline.assets import dataset, lake, raw
from cdc_lake.pipeline.spark_jobs import small_landings
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.athena import Athena
from resources.errors import JobFailed
from resources.spark.job_interface import JobRun

LOG = "https://console.aws.amazon.com/s3/buckets/work?region=eu-central-1&prefix=emr-logs/"
PAGE = "https://console.aws.amazon.com/emr/home?region=eu-central-1#/clusterDetails/j-1"
RUN = JobRun("", "s-1", "COMPLETED", "", "s3://work/emr-logs/j-1/steps/s-1/", LOG, PAGE)


def job(_session: object, spec: str) -> str:
    return spec


def other(_session: object, spec: str) -> str:
    return spec


def spark(run: JobRun | None) -> FakeSpark:
    """Return a fake Spark whose jobs report this run, or run in this process if it is None."""
    fake = FakeSpark({job: str.upper, other: str.lower})
    fake.elsewhere = run
    return fake


def test_no_job_is_started_after_the_run_was_interrupted() -> None:
    stopped = threading.Event()
    jobs = JobRuns(spark(None), stopped)
    assert jobs.run(job, "report") == "REPORT"
    stopped.set()
    with pytest.raises(JobFailed, match="the run was interrupted"):
        jobs.run(job, "report")


def test_metadata_contains_run_log_and_console() -> None:
    jobs = JobRuns(spark(RUN))
    assert jobs.metadata() == {}
    assert jobs.run(job, "report") == "REPORT"
    name = job.__module__.rpartition(".")[2]
    assert jobs.metadata() == {
        f"{name}_run": dg.MetadataValue.text("s-1: COMPLETED"),
        f"{name}_log": dg.MetadataValue.url(LOG),
        f"{name}_console": dg.MetadataValue.url(PAGE),
    }


def test_a_log_without_a_url_is_shown_as_text() -> None:
    jobs = JobRuns(spark(JobRun("", "s-1", "COMPLETED", "", "the primary machine, /mnt/var/log/steps/s-1/")))
    jobs.run(job, "report")
    assert [value.value for value in jobs.metadata().values()] == [
        "s-1: COMPLETED",
        "the primary machine, /mnt/var/log/steps/s-1/",
    ]


def test_a_run_in_this_process_adds_no_metadata() -> None:
    jobs = JobRuns(spark(None))
    jobs.run(job, "report")
    assert jobs.metadata() == {}


def test_runs_of_another_stage_on_the_same_spark_are_not_reported() -> None:
    shared = spark(RUN)
    shared.run(other, "report")
    assert JobRuns(shared).metadata() == {}


def materialised(shop: Shop, **changes: object) -> dict[str, dict[str, Any]]:
    """Materialise raw, lake and a dataset of the orders; return their metadata by stage."""
    assets = [
        raw.build(shop.orders),
        lake.build(shop.orders),
        dataset.build(shop.pipeline, shop.pipeline.spec.datasets[0]),
    ]
    with dg.DagsterInstance.ephemeral() as instance:
        resources = fake_resources(**{**shop.resources, **changes})
        found = dg.materialize(assets, instance=instance, resources=resources, run_config=QUIET)
        return {
            event.asset_key.path[1]: dict(event.materialization.metadata)
            for event in found.get_asset_materialization_events()
            if event.asset_key is not None
        }


def test_each_stage_shows_only_its_own_job(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.order(1)
    shop.spark.elsewhere = RUN
    with monkeypatch.context() as patched:
        patched.setattr(small_landings, "SMALL_LANDING_OFFSETS", 0)
        found = materialised(shop)
    for stage, name in (("raw", "land"), ("lake", "upsert")):
        assert found[stage][f"{name}_run"] == dg.MetadataValue.text("s-1: COMPLETED")
        assert found[stage][f"{name}_log"] == dg.MetadataValue.url(LOG)
        assert found[stage][f"{name}_console"] == dg.MetadataValue.url(PAGE)
    assert not [name for name in found["lake"] if name.startswith("land_")]
    shop.order(2)
    landed_here = materialised(shop)
    assert not [name for name in landed_here["raw"] if name.endswith("_run")], "it was landed without Spark"
    assert "upsert_run" in landed_here["lake"]
    without_remote_job = materialised(shop)
    assert not [name for stage in without_remote_job.values() for name in stage if name.endswith(("_run", "_console"))]


@pytest.mark.parametrize("price", [None, 5.0])
def test_stages_show_bytes_scanned_and_cost_of_their_queries(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, price: float | None
) -> None:
    real = type(shop.athena).query

    def metered(self: Athena, sql: str) -> object:
        self._meter(3_000_000, free=False)
        return real(self, sql)  # type: ignore[arg-type]

    shop.order(1)
    shop.athena.query("SELECT 1")
    monkeypatch.setattr(type(shop.athena), "query", metered)
    found = materialised(shop, athena=shop.athena.model_copy(update={"usd_per_tb": price}))
    for stage in ("lake", "dataset"):
        queries = int(str(found[stage]["athena_queries"].value))
        assert queries > 0
        assert found[stage]["athena_bytes_scanned"].value == queries * 3_000_000
        cost = found[stage].get("athena_usd")
        assert (cost and cost.value) == (price and pytest.approx(queries * 10e6 / 1e12 * price))
    assert not [name for name in found["raw"] if name.startswith("athena_")]
