"""The metrics of a pipeline: the age of the oldest watermark of its tables and the number of unlanded offsets."""

from __future__ import annotations

import time
from collections.abc import Mapping

from cdc_lake.pipeline.automation import pipeline_metrics
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.aws.metrics import UNLANDED, WATERMARK_AGE


def metrics_of(shop: Shop) -> Mapping[str, float]:
    """Return the metrics of the shop, whose tables can all be measured."""
    found = pipeline_metrics.measure(shop.pipeline, shop.kafka, shop.store)
    assert found.unknown == {}
    return found.values


def land_and_apply_all(shop: Shop) -> Shop:
    """Land and apply everything of both tables, then send a heartbeat."""
    for table in shop.pipeline.tables:
        shop.land(table)
        shop.apply(table)
    shop.write_heartbeat()
    return shop


def test_the_watermark_age_of_an_idle_source_stays_small(shop: Shop) -> None:
    shop.now = time.time()
    found = metrics_of(land_and_apply_all(shop))
    assert found[UNLANDED] == 0
    assert 0 <= found[WATERMARK_AGE] < 60


def test_unlanded_offsets_are_summed_over_all_tables(shop: Shop) -> None:
    land_and_apply_all(shop)
    for number in range(3):
        shop.order(number)
    shop.customer("ANNE")
    assert metrics_of(shop)[UNLANDED] == 4
    shop.land(shop.orders)
    assert metrics_of(shop)[UNLANDED] == 1


def test_the_watermark_age_is_that_of_the_oldest_watermark(shop: Shop) -> None:
    shop.now = time.time() - 1000
    shop.write_heartbeat()
    shop.customer("ANNE")
    land_and_apply_all(shop)
    shop.customer("BERT")
    shop.land(shop.customers)  # not applied: the lake's watermark is the heartbeat before these records
    shop.now = time.time()
    shop.write_heartbeat()
    assert 990 < metrics_of(shop)[WATERMARK_AGE] < 1100


def test_a_table_without_a_watermark_has_no_age(shop: Shop) -> None:
    shop.write_heartbeat()
    shop.order(1)
    found = metrics_of(shop)  # the orders were never landed
    assert found == {UNLANDED: 1.0}


def test_a_table_without_a_topic_is_reported_and_the_others_are_counted(shop: Shop) -> None:
    land_and_apply_all(shop)
    shop.order(1)
    shop.customer("ANNE")
    shop.kafka.delete_topic(shop.customers.topic)
    found = pipeline_metrics.measure(shop.pipeline, shop.kafka, shop.store)
    assert found.values == {UNLANDED: 1.0}, "without the age, whose alarm treats missing data as a breach"
    assert found.unknown.keys() == {"customers"}
    assert "topic shop.sales.customers: it does not exist yet" in found.unknown["customers"]
