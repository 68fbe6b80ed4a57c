"""Starting over: what is removed, in which order, cut off anywhere and run again, and what holds it up."""

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
from cdc_lake.jobs.landing.land import LandReport, LandSpec
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import raw
from cdc_lake.pipeline.assets.catalog_tables import register
from cdc_lake.pipeline.naming import Flow
from cdc_lake.pipeline.operations.reset import reset
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake.pipeline.spec import LandingSpec
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import bound
from cdc_lake_tests.fakes.steps import CutOff, Steps
from cdc_lake_tests.memory_store import MemoryLocation, MemoryStore
from cdc_lake_tests.shop_pipeline import HEARTBEATS

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


def noting(bucket: MemoryStore, steps: Steps) -> Callable[[Iterable[str]], int]:
    """The bucket's delete(), with what it is asked for noted by prefix."""
    delete = bucket.delete

    def noted(keys: Iterable[str]) -> int:
        asked = list(keys)
        if asked:
            steps.take(f"objects {'/'.join(asked[0].split('/')[:2])}/")
        return delete(asked)

    return noted


@pytest.fixture
def full(shop: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The shop with something of everything that a reset removes, and neighbours that it must leave alone."""
    monkeypatch.setattr(shop.bucket, "delete", noting(shop.bucket, shop.steps))
    for number in range(3):
        shop.order(number)
    shop.customer("ANNE")
    shop.beat()
    for table in shop.flow.tables:
        shop.land(table)
        shop.apply(table)
        columns = [(name, "string") for name in ("order_id", "country", "__deleted")]
        register(table, columns, shop.glue, shop.athena, shop.bucket, f"s3://shop/{table.lake_prefix}")
    for dataset in ("totals", "countries"):
        shop.athena.execute(f'CREATE OR REPLACE VIEW "shop_lake"."{dataset}" AS SELECT * FROM orders_current')
    dead_letters.put(shop.bucket, "shop", [dead_letters.DeadLetter.of("shop.sales.orders", 0, 1, "why", b"?")])
    shop.bucket.write(f"{object_names.closed_letter_prefix('shop')}shop.sales.orders/closed.json", b"{}")
    shop.kafka.make("__debezium-heartbeat.shop")
    page = shop.pages / "shop" / "page.html"
    page.parent.mkdir(parents=True)
    page.write_text("<html>")

    shop.kafka.make("stall.sales.orders")
    shop.connect.run("cdc-lake-stall")
    shop.postgres.put_slot("cdc_lake_stall")
    for folder in ("raw/shop2", "lake/shop2", "dlq/shop2", "dlq-closed/shop2", "athena-results"):
        shop.bucket.write(f"{folder}/x.json", b"{}")
    (shop.pages / "stall").mkdir()
    return shop


def begun(shop: World, flow: Flow | None = None, lease_wait_seconds: float = 0.0) -> Iterator[str]:
    """A reset of the shop, which goes on as its lines are asked for."""
    return reset(
        flow or shop.flow,
        shop.postgres,
        shop.kafka,
        shop.connect,
        shop.glue,
        shop.bucket,
        shop.deployment,
        shop.resolved["dashboards"],
        lease_wait_seconds,
    )


def run(shop: World, flow: Flow | None = None, lease_wait_seconds: float = 0.0) -> list[str]:
    """Reset the shop; what was removed, in its words."""
    return list(begun(shop, flow, lease_wait_seconds))


def leftovers(shop: World) -> dict[str, object]:
    """What is still there of the pipeline."""
    own = ("raw/shop/", "lake/shop/", "dlq/shop/", "dlq-closed/shop/")
    tables = ("totals", "countries", "orders", "orders_current", "customers", "customers_current")
    return {
        "connector": shop.connect.status(shop.flow.connector),
        "slot": shop.postgres.slot(shop.flow.slot),
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


def test_a_sink_connector_s_objects_of_the_topic_go_wherever_they_are(shop: World) -> None:
    topic = shop.orders.topic
    sink = LandingSpec.model_validate({"sink": {"layout": "confluent", "prefix": "raw/vendor"}})
    flow = replace(shop.flow, spec=shop.flow.spec.model_copy(update={"landing": sink}))
    own = [f"raw/vendor/{topic}/partition={n}/{topic}+{n}+0000000000.json" for n in (0, 1)]
    others = ["raw/vendor/shop.sales.others/partition=0/shop.sales.others+0+0000000000.json", f"raw/vendor/{topic}/x"]
    for key in (*own, *others):
        shop.bucket.write(key, b"")
    said = run(shop, flow)
    assert f"2 objects that the sink connector wrote from topic {topic}" in said
    assert sorted(key for key in shop.bucket.objects if key.startswith("raw/vendor")) == sorted(others)


def test_everything_goes_in_an_order_that_leaves_nothing_behind(full: World) -> None:
    said = run(full)
    assert full.steps.done == IN_ORDER
    assert leftovers(full) == NOTHING
    assert len(said) == len(IN_ORDER) + 1
    assert said[0] == "connector cdc-lake-shop with its offsets"
    assert said.index("pages in shop/") == said.index("topic __debezium-heartbeat.shop") + 1


def test_offsets_that_outlived_their_connector_go_too(full: World) -> None:
    full.connect.put(full.flow.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(full.flow, full.postgres, full.connect, full.bucket)
    full.connect.store(full.flow.connector, {"lsn": 995})
    full.connect.delete(full.flow.connector, offsets=False)
    assert run(full)[0] == "connector cdc-lake-shop with its offsets"
    assert full.connect.offsets(full.flow.connector) == ()
    assert leftovers(full) == NOTHING


def test_neighbours_and_the_source_stay(full: World) -> None:
    before = full.postgres.row_count("sales", "orders")
    run(full)
    assert full.kafka.topics() == ("stall.sales.orders",)
    assert full.connect.status("cdc-lake-stall") is not None
    assert full.postgres.slot("cdc_lake_stall") is not None
    left = {key.partition("/")[0] for key in full.bucket.objects}
    assert left == {"raw", "lake", "dlq", "dlq-closed", "athena-results", "leases", "chains"}
    assert (full.pages / "stall").is_dir()
    assert full.postgres.row_count("sales", "orders") == before


@pytest.mark.parametrize("cut_at", range(len(IN_ORDER)), ids=IN_ORDER)
def test_cut_off_anywhere_it_can_be_run_again(full: World, cut_at: int) -> None:
    full.steps.cut_at = cut_at
    with pytest.raises(CutOff):
        run(full)
    assert leftovers(full) != NOTHING
    full.steps.cut_at = None
    run(full)
    assert full.steps.done == IN_ORDER  # each thing once
    assert leftovers(full) == NOTHING


def test_a_second_reset_finds_nothing(full: World) -> None:
    run(full)
    assert run(full) == []


def test_a_pipeline_that_never_ran_has_nothing(shop: World) -> None:
    run(shop)
    assert run(shop) == []


WRITERS = [
    object_names.resnapshot_lease_key("shop"),
    object_names.lease_key("shop", "customers"),
    object_names.landing_lease_key("shop", "shop.sales.customers"),
]


@pytest.mark.parametrize("key", WRITERS)
def test_while_a_writer_is_at_work_nothing_is_removed(full: World, key: str) -> None:
    with (
        lease.held(full.bucket, key, "dagster run 1"),
        pytest.raises(LeaseHeldError, match=f"dagster run 1 writes here and holds {re.escape(key)}"),
    ):
        run(full)
    assert full.steps.done == []
    assert full.kafka.topic(HEARTBEATS) is not None
    run(full)
    assert leftovers(full) == NOTHING


@pytest.mark.parametrize("key", WRITERS)
def test_it_waits_for_a_writer_to_end(full: World, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    writer = lease.held(full.bucket, key, "dagster run 1")
    writer.__enter__()
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: writer.__exit__(None, None, None))
    run(full, lease_wait_seconds=5)
    assert leftovers(full) == NOTHING


def test_no_writer_gets_in_while_it_removes(full: World) -> None:
    steps = begun(full)
    next(steps)
    for table in full.flow.tables:
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


def test_a_landing_in_flight_is_waited_for_and_leaves_nothing_behind(
    full: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage itself, stopped in the middle of its job: nothing of it may outlive the reset."""
    land, refused = full.land_by, []

    def while_resetting(spec: LandSpec) -> LandReport:
        with pytest.raises(LeaseHeldError, match="dagster run"):
            run(full)
        refused.append(list(full.steps.done))
        assert spec.claim is not None
        lease.check(full.bucket, spec.claim)
        return land(spec)

    monkeypatch.setattr(full.spark, "_jobs", {landing.run: while_resetting})
    full.order(9)
    full.steps.done.clear()
    stage = raw.build(full.orders)
    given = {"kafka": full.kafka, "store": full.store, "spark": full.spark}
    with dg.DagsterInstance.ephemeral() as instance:
        assert dg.materialize([stage], instance=instance, resources=bound(**given), selection=[stage]).success
    assert refused == [[]]
    assert any(manifest.number == 2 for manifest in table_progress.manifests(full.bucket, full.orders))
    run(full)
    assert leftovers(full) == NOTHING


def test_a_landing_that_is_paused_before_its_manifest_leaves_nothing_in_the_next_chain(
    full: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has checked its lease for the last time, sleeps through it and a reset, and puts its manifest then."""
    key = object_names.landing_lease_key("shop", full.orders.topic)

    def paused(at: str) -> None:
        if "/_manifests/" not in at:
            return
        full.bucket.before_put = None
        expired = lease.LeaseRecord.model_validate_json(full.bucket.objects[key].body)
        full.bucket.write(key, expired.model_copy(update={"expires_at": 0.0}).model_dump_json().encode())
        run(full)
        for topic in (full.orders.topic, HEARTBEATS):
            full.kafka.make(topic)

    monkeypatch.setattr(landing, "_write", lambda _spark, _spec, spans: (spans, (), []))
    full.order(9)
    spec = table_progress.landing(full.orders, full.kafka, S3Location("shop")).spec
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
    assert upsert.new_manifests(full.bucket, full.orders.upsert_spec(S3Location("shop"), "t")) == list(chain.since(0))


def test_a_landing_that_begins_in_a_reset_asks_the_topic_after_it(full: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the lease before it reads the topic's id: nothing of the old topic is landed after the reset."""
    steps = begun(full)
    full.order(9)
    next(steps)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: list(steps))
    stage = raw.build(full.orders)
    given = {"kafka": full.kafka, "store": full.store, "spark": full.spark}
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [stage], instance=instance, resources=bound(**given), selection=[stage], raise_on_error=False
        )
    [failure] = [event.step_failure_data.error for event in done.all_events if event.is_step_failure]
    assert failure is not None
    assert failure.cause is not None
    assert "there is no topic shop.sales.orders yet" in failure.cause.message
    assert leftovers(full) == NOTHING
