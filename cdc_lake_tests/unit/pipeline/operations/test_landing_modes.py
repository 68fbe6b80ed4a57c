"""A pipeline whose objects a sink connector writes: what raw, its checks and its sensor make of them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError, ManifestGapError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.source.topic_records import fingerprint_number
from cdc_lake.jobs.adoption.adopt import AdoptReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import landing
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.naming import Flow
from cdc_lake.pipeline.operations import landing_modes
from cdc_lake.pipeline.operations.landing_modes import KafkaRecord
from cdc_lake.pipeline.spec import LandingSpec
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.shop_pipeline import YAML, write_shop
from cdc_lake_tests.sink_objects import CONFLUENT, named, written
from cdc_lake_tests.unit.pipeline.automation.conftest import clock, instance
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders

__all__ = ["clock", "instance"]


@pytest.fixture
def sunk(shop: World) -> World:
    """The shop with a sink connector."""
    sink = LandingSpec.model_validate({"sink": {"layout": "confluent"}, "flush_records": 5})
    shop.flow = Flow(shop.flow.spec.model_copy(update={"landing": sink}), shop.flow.folder)
    return shop


def write(shop: World, first: int, last: int) -> str:
    """The connector writes an object of the orders at these offsets; its key."""
    topic = shop.orders.topic
    records = [(m.offset, m.value or b"") for m in shop.kafka.peek(topic, 0, first) if m.offset <= last]
    key = named(CONFLUENT, topic, 0, records)
    shop.bucket.write(key, written(CONFLUENT, topic, 0, records))
    return key


def take(shop: World) -> AdoptReport:
    """What raw does."""
    spec = table_progress.landing(shop.orders, shop.kafka, S3Location("shop")).spec
    report = landing_modes.land(shop.orders, shop.kafka, spec, shop.spark.run)
    assert isinstance(report, AdoptReport)
    return report


def check(shop: World, name: str) -> dg.AssetCheckResult:
    """One of raw's checks."""
    [found] = [each for each in landing.build(shop.orders) if each.check_key.name == name]
    resources = {"store": shop.store} if name != "landed_to_the_end" else {"store": shop.store, "kafka": shop.kafka}
    return evaluate(found, **resources)


def test_what_the_connector_wrote_is_landed_and_applied(sunk: World) -> None:
    orders(sunk, 7)
    write(sunk, 0, 4)
    write(sunk, 5, 6)
    assert take(sunk).records == 7
    sunk.apply(sunk.orders)
    assert len(sunk.raw_events("orders")) == 7
    assert check(sunk, "landed_to_the_end").passed
    found = check(sunk, "manifests_contiguous")
    assert (found.passed, found.metadata["objects"].value) == (True, 2)


def test_a_missing_object_turns_the_check_red_and_one_with_more_does_not(sunk: World) -> None:
    orders(sunk, 7)
    key = write(sunk, 0, 4)
    take(sunk)
    write(sunk, 0, 6)
    assert check(sunk, "manifests_contiguous").passed
    sunk.bucket.delete([key])
    found = check(sunk, "manifests_whole")
    assert (found.passed, found.metadata["missing_or_changed"].value) == (False, [key])


def test_a_gap_is_told_where_a_run_is_seen(sunk: World, instance: dg.DagsterInstance, clock: Clock) -> None:
    orders(sunk, 7)
    land = Daemon.of("shop_orders_land", sunk, instance, clock)
    write(sunk, 4, 6)
    land.request()
    with pytest.raises(ManifestGapError, match="offsets 0 to 3 are in no object"):
        take(sunk)
    write(sunk, 0, 3)
    land.request()  # another position: another object is there
    take(sunk)
    assert land.skip() == "everything is landed"


def test_an_object_of_nobodys_launches_the_run_that_says_so(
    sunk: World, instance: dg.DagsterInstance, clock: Clock
) -> None:
    orders(sunk, 1)
    sunk.bucket.write(f"raw/shop/_sink/{sunk.orders.topic}/partition=0/stray", b"")
    Daemon.of("shop_orders_land", sunk, instance, clock).request()


def test_the_topics_record_is_kafkas(shop: World) -> None:
    orders(shop, 5)
    record = KafkaRecord(shop.kafka, shop.orders.topic)
    values = [fingerprint_number(message.value) for message in shop.kafka.peek(shop.orders.topic, 0, 0)]
    assert record.records(0, 1, 4) == list(enumerate(values))[1:4]
    assert record.records(0, 4, 4) == []
    shop.kafka._topics[shop.orders.topic].begins[0] = 2
    assert record.records(0, 1, 4) is None
    assert record.records(0, 2, 5) == list(enumerate(values))[2:5]


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ("{ layout: parquet }", "landing.sink.layout"),
        ("{ layout: lenses, prefix: elsewhere/ }", "use the connector's own prefix, below raw/"),
        ("{ layout: lenses_by_field }", "landing.sink.envelope: objects of a sink that partitions by fields"),
        ("{ layout: confluent, envelope: true }", "landing.sink.envelope: a confluent sink writes no envelope"),
        ("{ prefix: raw/x/ }", "landing.sink.layout: missing; give lenses, lenses_by_field, confluent or aiven"),
    ],
)
def test_what_the_yaml_may_say(tmp_path: Path, sink: str, said: str) -> None:
    write_shop(tmp_path, YAML.replace("flush_records: 5 }", f"flush_records: 5, sink: {sink} }}"))
    with pytest.raises(ContractError, match=said):
        load("shop", tmp_path)


def test_a_pipelines_own_prefix_by_default(sunk: World) -> None:
    found = landing_modes.sink(sunk.orders)
    assert found is not None
    assert (found.layout, found.prefix, found.envelope) == ("confluent", "raw/shop/_sink/", False)
