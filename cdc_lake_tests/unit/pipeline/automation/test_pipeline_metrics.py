"""The pipeline's figures: the oldest table's age, the sum of what waits, and no age that is not known."""

from __future__ import annotations

import time

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.automation import pipeline_metrics
from cdc_lake_tests.fake_pipeline import World
from resources.aws.metrics import UNLANDED, WATERMARK_AGE


def now(shop: World) -> dict[str, float]:
    """The shop's figures."""
    return pipeline_metrics.now(shop.flow, shop.kafka, shop.store)


def carried(shop: World) -> World:
    """Everything of both tables is landed and applied; the source goes on beating."""
    for table in shop.flow.tables:
        shop.land(table)
        shop.apply(table)
    shop.beat()
    return shop


def test_an_idle_source_keeps_the_lake_young(shop: World) -> None:
    shop.now = time.time()
    found = now(carried(shop))
    assert found[UNLANDED] == 0
    assert 0 <= found[WATERMARK_AGE] < 60


def test_what_waits_is_counted_over_all_tables(shop: World) -> None:
    carried(shop)
    for number in range(3):
        shop.order(number)
    shop.customer("ANNE")
    assert now(shop)[UNLANDED] == 4
    shop.land(shop.orders)
    assert now(shop)[UNLANDED] == 1


def test_the_age_is_the_oldest_tables(shop: World) -> None:
    shop.now = time.time() - 1000
    shop.beat()
    shop.customer("ANNE")
    carried(shop)
    shop.customer("BERT")
    shop.land(shop.customers)  # and not applied: the lake is as old as the heartbeat before what is
    shop.now = time.time()
    shop.beat()
    assert 990 < now(shop)[WATERMARK_AGE] < 1100


def test_a_table_without_a_watermark_has_no_age(shop: World) -> None:
    shop.beat()
    shop.order(1)
    found = now(shop)  # the orders were never landed
    assert found == {UNLANDED: 1.0}


def test_a_topic_that_is_not_there_is_no_zero(shop: World) -> None:
    shop.kafka.delete_topic(shop.customers.topic)
    with pytest.raises(ContractError, match=r"there is no topic shop\.sales\.customers"):
        now(shop)
