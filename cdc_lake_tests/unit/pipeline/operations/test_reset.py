"""Reset: what is removed and in which order, interruption at every step, and the leases that block it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import cast

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LeaseHeldError, LeaseLostError
from cdc_lake.contract.objects import dead_letters, object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import lease
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import raw
from cdc_lake.pipeline.assets.catalog_tables import register
from cdc_lake.pipeline.operations.reset import reset
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake.pipeline.spec.landing import LandingSpec
from cdc_lake_tests.fakes.dagster import fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import HEARTBEATS
from cdc_lake_tests.fakes.steps import CutOff, Steps
from cdc_lake_tests.helpers.memory_store import MemoryLocation, MemoryStore

IN_ORDER = [
    "connector cdc-lake-shop with offsets",
    "slot cdc_lake_shop",
    "topic shop.sales.orders",
    "topic shop.sales.customers",
    "topic shop.sales.cdc_heartbeat",
    "topic __debezium-heartbeat.shop",
    "catalog shop_lake.totals",
    "catalog shop_lake.countries",
    "catalog shop_lake.orders_current",
    "catalog shop_lake.orders",
    "catalog shop_lake.customers_current",
    "catalog shop_lake.customers",
    "objects lake/shop/",
    "objects raw/shop/",
    "objects dlq/shop/",
    "objects dlq-closed/shop/",
]


def recording_delete(bucket: MemoryStore, steps: Steps) -> Callable[[Iterable[str]], int]:
    """Return a delete() that records the prefix of the deleted keys."""
    delete = bucket.delete

    def delete_and_record(keys: Iterable[str]) -> int:
        requested = list(keys)
        if requested:
            steps.take(f"objects {'/'.join(requested[0].split('/')[:2])}/")
        return delete(requested)

    return delete_and_record


@pytest.fixture
def full(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The shop with everything that a reset removes, next to objects of others that it must keep."""
    monkeypatch.setattr(shop.bucket, "delete", recording_delete(shop.bucket, shop.steps))
    for number in range(3):
        shop.order(number)
    shop.customer("ANNE")
    shop.write_heartbeat()
    for table in shop.pipeline.tables:
        shop.land(table)
        shop.apply(table)
        columns = [(name, "string") for name in ("order_id", "country", "__deleted")]
        register(table, columns, shop.glue, shop.athena, shop.bucket, f"s3://shop/{table.lake_prefix}", None)
    for dataset in ("totals", "countries"):
        shop.athena.execute(f'CREATE OR REPLACE VIEW "shop_lake"."{dataset}" AS SELECT * FROM orders_current')
    dead_letters.put(shop.bucket, "shop", [dead_letters.DeadLetter.of("shop.sales.orders", 0, 1, "why", b"?")])
    shop.bucket.write(f"{object_names.closed_letter_prefix('shop')}shop.sales.orders/closed.json", b"{}")
    shop.kafka.make("__debezium-heartbeat.shop")
    page = shop.pages / "shop" / "page.html"
    page.parent.mkdir(parents=True)
    page.write_text("<html>")

    shop.kafka.make("neighbour.sales.orders")
    shop.connect.run("cdc-lake-neighbour")
    shop.postgres.put_slot("cdc_lake_neighbour")
    for folder in ("raw/shop2", "lake/shop2", "dlq/shop2", "dlq-closed/shop2", "athena-results"):
        shop.bucket.write(f"{folder}/x.json", b"{}")
    (shop.pages / "neighbour").mkdir()
    return shop


def begin_reset(shop: Shop, pipeline: Pipeline | None = None, lease_wait_seconds: float = 0.0) -> Iterator[str]:
    """Begin a reset of the shop; it advances as the caller iterates over its lines."""
    return reset(
        pipeline or shop.pipeline,
        shop.source,
        shop.kafka,
        shop.connect,
        shop.glue,
        shop.bucket,
        shop.deployment,
        shop.resolved["dashboards"],
        lease_wait_seconds,
    )


def run(shop: Shop, pipeline: Pipeline | None = None, lease_wait_seconds: float = 0.0) -> list[str]:
    """Reset the shop; return its lines, which name what was removed."""
    return list(begin_reset(shop, pipeline, lease_wait_seconds))


def remaining_state(shop: Shop) -> dict[str, object]:
    """Return what still exists of the pipeline."""
    own = ("raw/shop/", "lake/shop/", "dlq/shop/", "dlq-closed/shop/")
    tables = ("totals", "countries", "orders", "orders_current", "customers", "customers_current")
    return {
        "connector": shop.connect.status(shop.pipeline.connector),
        "slot": shop.postgres.slot(shop.pipeline.slot),
        "topics": [topic for topic in shop.kafka.topics() if "shop" in topic],
        "catalog": [name for name in tables if shop.glue.get_table("shop_lake", name)],
        "objects": [key for key in shop.bucket.objects if key.startswith(own)],
        "pages": (shop.pages / "shop").exists(),
    }


NOTHING: dict[str, object] = {
    "connector": None,
    "slot": None,
    "topics": [],
    "catalog": [],
    "objects": [],
    "pages": False,
}


def test_sink_objects_of_the_topic_are_removed_below_any_prefix(shop: Shop) -> None:
    topic = shop.orders.topic
    sink = LandingSpec.model_validate({"sink": {"layout": "confluent", "prefix": "raw/vendor"}})
    pipeline = replace(shop.pipeline, spec=shop.pipeline.spec.model_copy(update={"landing": sink}))
    own = [f"raw/vendor/{topic}/partition={n}/{topic}+{n}+0000000000.json" for n in (0, 1)]
    others = ["raw/vendor/shop.sales.others/partition=0/shop.sales.others+0+0000000000.json", f"raw/vendor/{topic}/x"]
    for key in (*own, *others):
        shop.bucket.write(key, b"")
    lines = run(shop, pipeline)
    assert f"2 objects that the sink connector wrote from topic {topic}" in lines
    assert sorted(key for key in shop.bucket.objects if key.startswith("raw/vendor")) == sorted(others)


def test_everything_is_removed_in_order(full: Shop) -> None:
    lines = run(full)
    assert full.steps.done == IN_ORDER
    assert remaining_state(full) == NOTHING
    assert len(lines) == len(IN_ORDER) + 1
    assert lines[0] == "connector cdc-lake-shop with its offsets"
    assert lines.index("pages in shop/") == lines.index("topic __debezium-heartbeat.shop") + 1


def test_offsets_without_a_connector_are_removed(full: Shop) -> None:
    full.connect.put(full.pipeline.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(full.pipeline, full.source, full.connect, full.bucket)
    full.connect.store(full.pipeline.connector, {"lsn": 995})
    full.connect.delete(full.pipeline.connector, offsets=False)
    assert run(full)[0] == "connector cdc-lake-shop with its offsets"
    assert full.connect.offsets(full.pipeline.connector) == ()
    assert remaining_state(full) == NOTHING


def test_other_pipelines_and_the_source_are_kept(full: Shop) -> None:
    before = full.postgres.row_count("sales", "orders")
    run(full)
    assert full.kafka.topics() == ("neighbour.sales.orders",)
    assert full.connect.status("cdc-lake-neighbour") is not None
    assert full.postgres.slot("cdc_lake_neighbour") is not None
    left = {key.partition("/")[0] for key in full.bucket.objects}
    assert left == {"raw", "lake", "dlq", "dlq-closed", "athena-results", "leases", "chains"}
    assert (full.pages / "neighbour").is_dir()
    assert full.postgres.row_count("sales", "orders") == before


@pytest.mark.parametrize("cut_at", range(len(IN_ORDER)), ids=IN_ORDER)
def test_a_reset_interrupted_at_any_step_can_be_repeated(full: Shop, cut_at: int) -> None:
    full.steps.cut_at = cut_at
    with pytest.raises(CutOff):
        run(full)
    assert remaining_state(full) != NOTHING
    full.steps.cut_at = None
    run(full)
    assert full.steps.done == IN_ORDER  # each step once
    assert remaining_state(full) == NOTHING


def test_a_second_reset_removes_nothing(full: Shop) -> None:
    run(full)
    assert run(full) == []


def test_a_pipeline_that_was_never_started_has_nothing_to_remove(shop: Shop) -> None:
    run(shop)
    assert run(shop) == []


WRITERS = [
    object_names.resnapshot_lease_key("shop"),
    object_names.lease_key("shop", "customers"),
    object_names.landing_lease_key("shop", "shop.sales.customers"),
]


@pytest.mark.parametrize("key", WRITERS)
def test_nothing_is_removed_while_a_writer_holds_a_lease(full: Shop, key: str) -> None:
    with (
        lease.held(full.bucket, key, "dagster run 1"),
        pytest.raises(LeaseHeldError, match=f"dagster run 1 holds {re.escape(key)}"),
    ):
        run(full)
    assert full.steps.done == []
    assert full.kafka.topic(HEARTBEATS) is not None
    run(full)
    assert remaining_state(full) == NOTHING


@pytest.mark.parametrize("key", WRITERS)
def test_a_reset_waits_for_the_lease_of_a_writer(full: Shop, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    writer = lease.held(full.bucket, key, "dagster run 1")
    writer.__enter__()
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: writer.__exit__(None, None, None))
    run(full, lease_wait_seconds=5)
    assert remaining_state(full) == NOTHING


def test_no_writer_gets_a_lease_during_a_reset(full: Shop) -> None:
    steps = begin_reset(full)
    next(steps)
    for table in full.pipeline.tables:
        for key in (object_names.lease_key("shop", table.name), object_names.landing_lease_key("shop", table.topic)):
            with (
                pytest.raises(LeaseHeldError, match="reset "),
                lease.held(full.bucket, key, "run 2", wait_seconds=0),
            ):
                pass
    list(steps)
    for key in WRITERS:
        with lease.held(full.bucket, key, "run 3", wait_seconds=0):
            pass


@pytest.mark.usefixtures("landings_by_spark")
def test_a_reset_during_a_landing_is_refused_and_succeeds_after_it(full: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reset is called in the middle of the raw asset's landing job."""
    land, refused = full.land_by, []

    def land_during_reset(spec: LandSpec) -> LandReport:
        with pytest.raises(LeaseHeldError, match="dagster run"):
            run(full)
        refused.append(list(full.steps.done))
        assert spec.claim is not None
        lease.check(full.bucket, spec.claim)
        return land(spec)

    monkeypatch.setattr(full.spark, "jobs", {landing.run: land_during_reset})
    full.order(9)
    full.steps.done.clear()
    stage = raw.build(full.orders)
    resources = {"postgres": full.postgres, "kafka": full.kafka, "store": full.store, "spark": full.spark}
    with dg.DagsterInstance.ephemeral() as instance:
        assert dg.materialize(
            [stage], instance=instance, resources=fake_resources(**resources), selection=[stage]
        ).success
    assert refused == [[]]
    assert any(manifest.number == 2 for manifest in table_progress.manifests(full.bucket, full.orders))
    run(full)
    assert remaining_state(full) == NOTHING


def test_a_landing_suspended_before_its_manifest_writes_nothing_to_the_next_chain(
    full: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is suspended after its last lease check until the lease has expired and a reset has ended."""
    key = object_names.landing_lease_key("shop", full.orders.topic)

    def paused(put_key: str) -> None:
        if "/_manifests/" not in put_key:
            return
        full.bucket.before_put = None
        expired = lease.LeaseRecord.model_validate_json(full.bucket.objects[key].body)
        full.bucket.write(key, expired.model_copy(update={"expires_at": 0.0}).model_dump_json().encode())
        run(full)
        for topic in (full.orders.topic, HEARTBEATS):
            full.kafka.make(topic)

    monkeypatch.setattr(landing, "_write", lambda _spec, spans, _write: (spans, (), []))
    full.order(9)
    spec = table_progress.landing_input(full.orders, full.kafka, S3Location("shop")).spec
    location = cast(S3Location, MemoryLocation(full.bucket))
    full.bucket.before_put = paused
    with pytest.raises(LeaseLostError), lease.held(full.bucket, key, "run 1") as held:
        landing.run(cast(SparkSession, None), replace(spec, location=location, claim=held.claim))
    [late] = [key for key in full.bucket.objects if "/_manifests/" in key]
    assert late == object_names.manifest_key("shop", full.orders.topic, 2), "it is in the old chain"
    chain = Chain(full.bucket, "shop", full.orders.topic)
    assert chain.head() is None
    for number in (1, 2):
        full.order(number)
        full.land(full.orders)
    assert [manifest.number for manifest in chain.since(0)] == [1, 2]
    assert upsert.new_manifests(full.bucket, full.orders.upsert_spec(S3Location("shop"), "t"), None) == list(
        chain.since(0)
    )


def test_a_landing_that_begins_during_a_reset_reads_the_topic_after_it(
    full: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the topic's id only when it has the lease, so that no record of the old topic is landed afterwards."""
    steps = begin_reset(full)
    full.order(9)
    next(steps)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: list(steps))
    stage = raw.build(full.orders)
    resources = {"postgres": full.postgres, "kafka": full.kafka, "store": full.store, "spark": full.spark}
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [stage], instance=instance, resources=fake_resources(**resources), selection=[stage], raise_on_error=False
        )
    [failure] = [event.step_failure_data.error for event in done.all_events if event.is_step_failure]
    assert failure is not None
    assert failure.cause is not None
    assert "topic shop.sales.orders: it does not exist yet" in failure.cause.message
    assert remaining_state(full) == NOTHING
