"""Adoption of a sink connector's objects by the raw asset, its checks and its sensor."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError, ManifestGapError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.source.topic_records import fingerprint_number
from cdc_lake.jobs.adoption.adopt import AdoptReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.checks import raw as raw_checks
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.operations import land_and_apply, landing_modes
from cdc_lake.pipeline.operations.land_and_apply import LandResult
from cdc_lake.pipeline.operations.landing_modes import KafkaTopic
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spec.landing import LandingSpec
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from cdc_lake_tests.helpers.sink_objects import CONFLUENT, object_key, written
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders


@pytest.fixture
def adopting_shop(shop: Shop) -> Shop:
    """The shop with a sink connector (confluent layout)."""
    sink = LandingSpec.model_validate({"sink": {"layout": "confluent"}, "flush_records": 5})
    shop.pipeline = Pipeline(shop.pipeline.spec.model_copy(update={"landing": sink}), shop.pipeline.folder)
    return shop


def write(shop: Shop, first: int, last: int) -> str:
    """Write the sink connector's object of the orders at these offsets; return its key."""
    topic = shop.orders.topic
    records = [(m.offset, m.value or b"") for m in shop.kafka.peek(topic, 0, first) if m.offset <= last]
    key = object_key(CONFLUENT, topic, 0, records)
    shop.bucket.write(key, written(CONFLUENT, topic, 0, records))
    return key


def adopt(shop: Shop) -> AdoptReport:
    """Adopt the objects, as the raw asset does."""
    spec = table_progress.landing_input(shop.orders, shop.kafka, S3Location("shop")).spec
    report = landing_modes.land(shop.orders, shop.kafka, spec, shop.spark.run)
    assert isinstance(report, AdoptReport)
    return report


def land(shop: Shop) -> LandResult:
    """Land the orders under their lease."""
    return land_and_apply.land(shop.orders, shop.source, shop.kafka, S3Location("shop"), shop.spark.run, "test")


def check(shop: Shop, name: str) -> dg.AssetCheckResult:
    """Evaluate one check of the raw asset."""
    [found] = [each for each in raw_checks.build(shop.orders) if each.check_key.name == name]
    resources = {"store": shop.store} if name != "landed_to_the_end" else {"store": shop.store, "kafka": shop.kafka}
    return evaluate(found, **resources)


def test_objects_of_the_connector_are_landed_and_applied(adopting_shop: Shop) -> None:
    orders(adopting_shop, 7)
    write(adopting_shop, 0, 4)
    write(adopting_shop, 5, 6)
    assert adopt(adopting_shop).records == 7
    adopting_shop.apply(adopting_shop.orders)
    assert len(adopting_shop.raw_events("orders")) == 7
    assert check(adopting_shop, "landed_to_the_end").passed
    found = check(adopting_shop, "manifests_contiguous")
    assert (found.passed, found.metadata["objects"].value) == (True, 2)


def test_a_missing_object_fails_the_check_and_a_longer_one_passes(adopting_shop: Shop) -> None:
    orders(adopting_shop, 7)
    key = write(adopting_shop, 0, 4)
    adopt(adopting_shop)
    write(adopting_shop, 0, 6)
    assert check(adopting_shop, "manifests_contiguous").passed
    adopting_shop.bucket.delete([key])
    found = check(adopting_shop, "manifests_whole")
    assert (found.passed, found.metadata["missing_or_changed"].value) == (False, [key])


def test_a_gap_launches_a_run_that_reports_it(adopting_shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> None:
    orders(adopting_shop, 7)
    land = Daemon.for_sensor("shop_land", adopting_shop, instance, clock)
    write(adopting_shop, 4, 6)
    land.request()
    with pytest.raises(ManifestGapError, match=r"in no object \(offsets 0 to 3\)"):
        adopt(adopting_shop)
    write(adopting_shop, 0, 3)
    land.request()  # a new run key, because there is a new object
    adopt(adopting_shop)
    assert land.skip() == "everything is landed"


def test_objects_that_the_sink_connector_writes_later_are_waited_for(
    adopting_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(land_and_apply, "_SINK_POLL_SECONDS", 0.01)
    orders(adopting_shop, 7)
    late = iter([None, (0, 4), None, (5, 6)])

    def attempt() -> LandResult:
        if offsets := next(late):
            write(adopting_shop, *offsets)
        return land(adopting_shop)

    assert land_and_apply.land_all(adopting_shop.orders, attempt, seconds=30) == 7
    assert next(late, "exhausted") == "exhausted"


def test_objects_that_the_sink_connector_never_writes_fail_after_the_timeout(
    adopting_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(land_and_apply, "_SINK_POLL_SECONDS", 0.01)
    orders(adopting_shop, 7)
    write(adopting_shop, 4, 6)
    with pytest.raises(ManifestGapError, match=r"in no object \(offsets 0 to 3\)"):
        land_and_apply.land_all(adopting_shop.orders, partial(land, adopting_shop), seconds=0.05)
    write(adopting_shop, 0, 3)
    orders(adopting_shop, 1)
    with pytest.raises(ContractError, match="within 0 s the sink connector did not write the records after manifest 1"):
        land_and_apply.land_all(adopting_shop.orders, partial(land, adopting_shop), seconds=0.05)


def test_an_unknown_object_launches_the_run_that_reports_it(
    adopting_shop: Shop, instance: dg.DagsterInstance, clock: Clock
) -> None:
    orders(adopting_shop, 1)
    adopting_shop.bucket.write(f"raw/shop/_sink/{adopting_shop.orders.topic}/partition=0/stray", b"")
    Daemon.for_sensor("shop_land", adopting_shop, instance, clock).request()


def test_kafka_record_reads_fingerprints_of_existing_offsets(shop: Shop) -> None:
    orders(shop, 5)
    record = KafkaTopic(shop.kafka, shop.orders.topic)
    values = [fingerprint_number(message.value) for message in shop.kafka.peek(shop.orders.topic, 0, 0)]
    assert record.records(0, 1, 4) == list(enumerate(values))[1:4]
    assert record.records(0, 4, 4) == []
    shop.kafka._topics[shop.orders.topic].begins[0] = 2
    assert record.records(0, 1, 4) is None
    assert record.records(0, 2, 5) == list(enumerate(values))[2:5]


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{ layout: parquet }", "landing.sink.layout"),
        ("{ layout: lenses, prefix: elsewhere/ }", "use the connector's own prefix, below raw/"),
        ("{ layout: lenses_by_field }", "landing.sink.envelope: objects of a sink that partitions by fields"),
        ("{ layout: confluent, envelope: true }", "landing.sink.envelope: a confluent sink writes no envelope"),
        ("{ prefix: raw/x/ }", "landing.sink.layout: missing; give lenses, lenses_by_field, confluent or aiven"),
    ],
)
def test_invalid_sink_settings_are_rejected(tmp_path: Path, sink: str, message: str) -> None:
    write_shop(tmp_path, YAML.replace("flush_records: 5 }", f"flush_records: 5, sink: {sink} }}"))
    with pytest.raises(ContractError, match=message):
        load("shop", tmp_path)


def test_the_default_sink_prefix_is_the_pipelines_own(adopting_shop: Shop) -> None:
    found = landing_modes.sink(adopting_shop.orders)
    assert found is not None
    assert (found.layout, found.prefix, found.envelope) == ("confluent", "raw/shop/_sink/", False)
