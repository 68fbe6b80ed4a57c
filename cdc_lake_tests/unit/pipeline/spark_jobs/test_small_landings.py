"""Landings without Spark: the same objects, manifests and dead letters; more records are left to Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lake.contract.errors import TopicRecreatedError
from cdc_lake.contract.objects import dead_letters, raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.spark_jobs import small_landings
from cdc_lake.pipeline.spark_jobs.small_landings import SmallLandings
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.source.kafka import FakeKafka

NOT_BY_SPARK = LandReport(None, -1, 0, 0, 0, 0.0)


def land(shop: Shop, kafka: FakeKafka | None = None) -> LandReport:
    """Land the orders' new records."""
    spark = FakeSpark({landing.run: lambda _: NOT_BY_SPARK})
    spec = table_progress.landing_input(shop.orders, shop.kafka, S3Location("shop")).spec
    return SmallLandings(spark, kafka or shop.kafka).run(landing.run, spec)


def newest(shop: Shop) -> Manifest:
    found = Chain(shop.bucket, "shop", shop.orders.topic).head()
    assert found is not None
    return found


def test_few_records_are_landed_without_spark(shop: Shop) -> None:
    for number in (1, 2, 3):
        shop.order(number)
    assert land(shop).records == 3
    assert [event["order_id"] for event in shop.raw_events("orders")] == [1, 2, 3]
    assert (newest(shop).spans[0].first, newest(shop).spans[0].next) == (0, 3)
    shop.order(4)
    assert land(shop).records == 1
    assert [event["order_id"] for event in shop.raw_events("orders")] == [1, 2, 3, 4]
    assert land(shop).manifest is None, "there is nothing new"


def test_an_object_has_the_records_of_one_partition(shop: Shop) -> None:
    topic = shop.orders.topic
    shop.kafka.make(topic, 2)
    for number in range(6):
        shop.kafka.send(topic, b'{"order_id": %d}' % number, partition=number % 2)
    assert land(shop).objects == 2
    assert {
        item.partition: [value for _, value in raw_objects.records(shop.bucket, item)] for item in newest(shop).objects
    } == {part: [b'{"order_id": %d}' % number for number in range(part, 6, 2)] for part in (0, 1)}


def test_a_record_without_a_value_becomes_a_dead_letter_with_key_and_headers(shop: Shop) -> None:
    topic = shop.orders.topic
    shop.order(1)
    shop.kafka.send(topic, b"", key=b"k")
    records = shop.kafka._topics[topic].records[0]
    records[-1] = replace(records[-1], headers=(("h", b"v"), ("none", None)))
    assert (found := land(shop)).dead_letters == 1
    assert found.records == 1
    [letter] = dead_letters.letters(shop.bucket, "shop")
    assert letter.offset == 1
    assert dead_letters.value_of(shop.bucket, "shop", letter) == b""
    assert letter.key is not None


def test_a_topic_that_lost_landed_records_is_found(shop: Shop) -> None:
    shop.order(1)
    shop.order(2)
    land(shop)
    records = shop.kafka._topics[shop.orders.topic].records[0]
    records[1] = replace(records[1], value=b'{"order_id": 7}')
    shop.order(3)
    with pytest.raises(TopicRecreatedError, match="has another record at that offset"):
        land(shop)


def test_more_records_are_left_to_spark(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_landings, "SMALL_LANDING_OFFSETS", 2)
    for number in range(3):
        shop.order(number)
    assert land(shop) is NOT_BY_SPARK
