"""The number of store requests of a batch is independent of that of manifests (benchmarks/write_path/batch_cost.md)."""

from __future__ import annotations

from collections.abc import Callable

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import chain_verification
from cdc_lake_tests.fakes import jobs
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


def land(shop: Shop) -> None:
    """Land one batch: the requests of the landing sensor, of the raw asset and of the landing job's driver."""
    table_progress.landing_input(shop.orders, shop.kafka, S3Location("shop"))
    found = table_progress.landing_input(shop.orders, shop.kafka, S3Location("shop"))
    shop.land_by(found.spec)
    head = found.chain.head(found.spec.head)
    assert head is not None
    found.chain.count_records(head)
    table_progress.raw_watermark(shop.bucket, shop.orders, found.state)


def check(shop: Shop) -> None:
    """Run the light check of the chain."""
    assert not chain_verification.verify_new(chain(shop)).damaged


def apply(shop: Shop) -> None:
    """Apply one batch: the requests of the apply sensor and of the upsert's driver."""
    spec = shop.orders.upsert_spec(S3Location("shop"), "test")
    assert len(upsert.new_manifests(shop.bucket, spec, timeline.last_commit(shop.bucket, spec.prefix))) == 1
    jobs.apply(shop.bucket, spec)


def chain(shop: Shop) -> Chain:
    """Return the chain of the orders, with nothing cached."""
    return Chain(shop.bucket, "shop", shop.orders.topic)


def requests(shop: Shop, work: Callable[[Shop], object]) -> int:
    """Return the number of store requests that `work` makes."""
    shop.bucket.forget_requests()
    work(shop)
    return shop.bucket.total


def test_a_batch_makes_the_same_number_of_requests_after_any_number_of_manifests(shop: Shop) -> None:
    costs, whole_chain_costs = [], []
    for size in (10, 300):
        for number in range(chain(shop).length(), size):
            shop.order(number % 5)
            shop.land(shop.orders)
        head = chain(shop).head()
        assert head is not None
        assert (head.number, chain(shop).count_records(head)) == (size, size)
        check(shop)
        jobs.apply(shop.bucket, shop.orders.upsert_spec(S3Location("shop"), "test"))
        shop.order(1)
        costs.append([requests(shop, step) for step in (land, check, apply)])
        whole_chain_costs.append(requests(shop, lambda _: chain_verification.verify_whole(chain(shop))))
    assert costs[0] == costs[1]
    assert sum(costs[0]) <= 60
    assert whole_chain_costs[1] > 300 > sum(costs[0]) > whole_chain_costs[0]
