"""What a batch asks of the store: as much after hundreds of manifests as after ten (benchmarks/batch_cost.md)."""

from __future__ import annotations

from collections.abc import Callable

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import chain_verification
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes import jobs


def land(shop: World) -> None:
    """The requests of the sensor and of the stage raw around the job, and those of the job's driver."""
    table_progress.landing(shop.orders, shop.kafka, S3Location("shop"))
    found = table_progress.landing(shop.orders, shop.kafka, S3Location("shop"))
    shop.land_by(found.spec)
    head = found.chain.head(found.spec.head)
    assert head is not None
    found.chain.records(head)
    table_progress.raw_watermark(shop.bucket, shop.orders, found.state)


def check(shop: World) -> None:
    """Those of the light check."""
    assert not chain_verification.verify_new(chain(shop)).damaged


def apply(shop: World) -> None:
    """Those of the sensor and of the upsert's driver."""
    spec = shop.orders.upsert_spec(S3Location("shop"), "test")
    assert len(upsert.new_manifests(shop.bucket, spec)) == 1
    jobs.apply(shop.bucket, spec)


def chain(shop: World) -> Chain:
    """The orders' chain as a new process finds it."""
    return Chain(shop.bucket, "shop", shop.orders.topic)


def requests(shop: World, work: Callable[[World], object]) -> int:
    """How many requests something takes."""
    shop.bucket.forget_requests()
    work(shop)
    return shop.bucket.total


def test_a_batch_costs_the_same_after_any_number_of_manifests(shop: World) -> None:
    costs, whole = [], []
    for size in (10, 300):
        for number in range(chain(shop).length(), size):
            shop.order(number % 5)
            shop.land(shop.orders)
        head = chain(shop).head()
        assert head is not None
        assert (head.number, chain(shop).records(head)) == (size, size)
        check(shop)
        jobs.apply(shop.bucket, shop.orders.upsert_spec(S3Location("shop"), "test"))
        shop.order(1)
        costs.append([requests(shop, step) for step in (land, check, apply)])
        whole.append(requests(shop, lambda _: chain_verification.verify_whole(chain(shop))))
    assert costs[0] == costs[1]
    assert sum(costs[0]) <= 60
    assert whole[1] > 300 > sum(costs[0]) > whole[0]
