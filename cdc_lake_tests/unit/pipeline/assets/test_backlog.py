"""A run of the land sensor lands and applies again while the flush rule requires it; other runs end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.pipeline import component
from cdc_lake.pipeline.assets import backlog
from cdc_lake.pipeline.assets.backlog import Backlog
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

FLUSH_RECORDS = 5
"""Of the shop's YAML."""
BY_SENSOR = {"cdc_lake/sensor": "shop_land"}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


def commits(shop: Shop, instance: dg.DagsterInstance, arriving: list[int], tags: dict[str, str]) -> list[int]:
    """Run the land job; while a batch of orders is applied, the next number of `arriving` orders arrives.

    Return how many orders each commit has. The numbers in the metadata must be the sums.
    """
    found: list[int] = []
    numbers = iter(range(2, 1000))

    def apply(spec: UpsertSpec) -> upsert.UpsertReport:
        if spec.table == "orders" and arriving:
            for _ in range(arriving.pop(0)):
                shop.order(next(numbers))
        report = shop.apply_by(spec)
        if spec.table == "orders":
            found.append(report.events)
        return report

    shop.spark.jobs[upsert.run] = apply
    shop.order(1)
    built = component.build(shop.pipeline)
    defs = dg.Definitions.merge(
        built, dg.Definitions(resources=fake_resources(**shop.resources), executor=dg.in_process_executor)
    )
    job = defs.resolve_job_def("shop_land")
    done = job.execute_in_process(instance=instance, run_config=QUIET, tags=tags)
    reported = {"raw": 0, "lake": 0}
    for event in done.get_asset_materialization_events():
        assert event.asset_key is not None
        if event.asset_key.path[-1] in ("orders_raw", "orders_lake"):
            metadata = event.materialization.metadata
            reported[event.asset_key.path[1]] += int(
                str(metadata["records" if "raw" in event.asset_key.path else "events"].value)
            )
    assert reported == {"raw": sum(found), "lake": sum(found)}
    return found


def test_a_run_continues_while_enough_records_arrive(shop: Shop, instance: dg.DagsterInstance) -> None:
    assert commits(shop, instance, [FLUSH_RECORDS, FLUSH_RECORDS + 2, 1], BY_SENSOR) == [1, 5, 7]


def test_a_run_that_no_sensor_launched_ends(shop: Shop, instance: dg.DagsterInstance) -> None:
    assert commits(shop, instance, [FLUSH_RECORDS], {}) == [1]


def test_a_run_begins_no_batch_after_its_time(
    shop: Shop, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "SECONDS", 0.0)
    assert commits(shop, instance, [FLUSH_RECORDS], BY_SENSOR) == [1]


def test_a_target_applies_what_another_one_has_landed(shop: Shop) -> None:
    run = dg.DagsterRun("shop_land", tags=BY_SENSOR)
    layer = SimpleNamespace(selected_asset_keys={shop.orders.key("raw")})
    context: Any = SimpleNamespace(run=run, job_def=SimpleNamespace(asset_layer=layer))
    found = Backlog(context, shop.orders, shop.kafka, shop.bucket, time.monotonic() - backlog.SECONDS)
    assert found.next_step() is None
    for number in range(1, FLUSH_RECORDS + 1):
        shop.order(number)
    assert found.next_step() is None, "the run's time is over"
    shop.land(shop.orders)
    assert found.next_step() == "apply"
    assert found.next_step() is None


def test_an_error_in_a_later_batch_leaves_the_report_of_the_earlier_ones(
    shop: Shop, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backlog, "next_step", lambda _: (_ for _ in ()).throw(ContractError("the topic is gone")))
    assert commits(shop, instance, [], BY_SENSOR) == [1]
