"""A pipeline that runs continuously: changes, a new column, a triggered run beside it, and a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue

import dagster as dg
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.pipeline.assets.lake import LakeSystems
from cdc_lake.pipeline.continuous import run
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns
from cdc_lake.profile import spark
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline
from cdc_lake_tests.integration.chain.conftest import NewPipeline

BOUND = 120.0


@contextmanager
def running(pipeline: ChainPipeline) -> Iterator[Queue[dg.AssetMaterialization | dg.AssetObservation]]:
    """Run the pipeline during the block; yield its reports, one for each asset at the end."""
    reports: Queue[dg.AssetMaterialization | dg.AssetObservation] = Queue()
    stop, found = threading.Event(), pipeline.resources
    systems = LakeSystems(
        pipeline.loaded.source_postgres(found["postgres"]),
        found["kafka"],
        found["store"],
        JobRuns(spark()),
        found["glue"],
        found["athena"],
        "the test",
    )
    with ThreadPoolExecutor(1) as pool:
        work: Future[None] = pool.submit(run.run, pipeline.loaded, systems, reports.put, stop, 600.0)
        try:
            yield reports
        finally:
            stop.set()
        work.result(BOUND)


def until(found: Callable[[], bool]) -> None:
    """Wait until `found` returns true. Raises RetryError."""
    Retrying(retry=retry_if_result(lambda result: not result), stop=stop_after_delay(BOUND), wait=wait_fixed(0.2))(
        found
    )


def test_changes_reach_the_lake_without_runs(new_pipeline: NewPipeline) -> None:
    pipeline = new_pipeline("endless", {"goods": "", "quiet": ""})
    pipeline.execute("create table goods (id int primary key, v text); insert into goods values (0, 'first')")
    pipeline.execute("create table quiet (id int primary key, v text)")
    pipeline.materialise("source", "topic")

    def values() -> dict[object, object]:
        return {key: value for key, value in pipeline.by_athena('select id, v from "goods_current"')}  # noqa: C416

    with running(pipeline) as reports:
        until(lambda: pipeline.resources["glue"].get_table("endless", "goods_current") is not None)
        until(lambda: values() == {0: "first"})
        for number in range(1, 4):
            pipeline.execute("insert into goods values (%s, %s)", number, f"v{number}")
            pipeline.execute("update goods set v = %s where id = 0", f"by {number}")
            until(lambda number=number: values().get(number) == f"v{number}")  # type: ignore[misc]
        # The source's schema changes, and another run lands and applies at the same time.
        pipeline.execute("alter table goods add column w text default 'old'")
        pipeline.execute("insert into goods values (4, 'v4', 'new')")
        pipeline.land_and_apply()
        until(lambda: values().get(4) == "v4")
        pipeline.execute("delete from goods where id = 1")
        until(lambda: 1 not in values())
    assert {key: (row["v"], row["w"]) for key, row in pipeline.by_spark("goods").items()} == {
        0: ("by 3", "old"),
        2: ("v2", "old"),
        3: ("v3", "old"),
        4: ("v4", "new"),
    }
    events = {each.asset_key.path[-1]: each for each in [reports.get() for _ in range(reports.qsize())]}
    assert set(events) == {"goods_raw", "goods_lake", "quiet_raw", "quiet_lake"}
    assert isinstance(lake := events["goods_lake"], dg.AssetMaterialization)
    assert int(str(lake.metadata["commits"].value)) > 2
    assert lake.metadata["dagster/row_count"].value == 4

    # What was written while nothing ran is applied by the next start.
    pipeline.execute("insert into goods values (5, 'v5', 'new')")
    with running(pipeline):
        until(lambda: values().get(5) == "v5")
    assert not pipeline.dead_letters()
