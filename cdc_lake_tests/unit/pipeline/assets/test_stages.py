"""The stages over fakes, end to end: what they do the first time, the second time, and after a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
import pytest

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.source.epochs import Epochs, Start
from cdc_lake.pipeline import component
from cdc_lake.pipeline.assets import topic
from cdc_lake.pipeline.assets.standard_metadata import UNCHANGED
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import QUIET, bound

Metadata = Mapping[str, Any]


class Runner:
    """Materialises parts of the shop's graph in one Dagster instance."""

    def __init__(self, shop: World, instance: dg.DagsterInstance, *, checks: bool = False) -> None:
        built = component.build(shop.flow)
        made = dg.Definitions(
            assets=built.assets,
            asset_checks=built.asset_checks,
            jobs=built.jobs,
            resources=bound(**shop.resources),
            executor=dg.in_process_executor,
        )
        self.job = made.resolve_job_def
        self._with_checks = checks
        self._job = made.resolve_job_def("shop")
        self.instance = instance
        self.order: list[str] = []
        self.checks: dict[str, bool] = {}

    def __call__(self, *stages: str) -> dict[str, Metadata]:
        """Metadata by asset; raises what a step raised."""
        keys = [key for key in self._job.asset_layer.executable_asset_keys if not stages or key.path[1] in stages]
        # Without a selection of checks, all checks of these assets run.
        part = self._job.get_subset(
            asset_selection=set(keys), asset_check_selection=None if self._with_checks else set()
        )
        result = part.execute_in_process(instance=self.instance, run_config=QUIET)
        events = result.get_asset_materialization_events()
        self.order = ["/".join(event.asset_key.path[1:]) for event in events if event.asset_key]
        self.checks = {
            f"{'/'.join(found.asset_key.path[1:])}:{found.check_name}": found.passed
            for found in result.get_asset_check_evaluations()
        }
        return {
            "/".join(event.asset_key.path[1:]): {
                name: value.value for name, value in event.materialization.metadata.items()
            }
            for event in events
            if event.asset_key
        }


@pytest.fixture
def fresh(shop: World) -> World:
    """The shop with rows at the source, and nothing deployed."""
    for name in shop.kafka.topics():
        shop.kafka.delete_topic(name)
    shop.connect.delete(shop.flow.connector)
    shop.postgres.drop_slot(shop.flow.slot)
    shop.bucket.objects.clear()
    return shop


@pytest.fixture
def run(fresh: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """Materialises the shop."""
    monkeypatch.setattr(
        topic, "connector_config", lambda *_: {"connector.class": "Debezium", "exactly.once.support": "required"}
    )
    with dg.DagsterInstance.ephemeral() as instance:
        yield Runner(fresh, instance)


def deployed(shop: World) -> None:
    """What Debezium does once it runs: the slot, and the rows as a snapshot."""
    shop.postgres.put_slot(shop.flow.slot)
    shop.customer("ANNE")
    for number in (1, 2, 3):
        shop.order(number, total=f"{number}.50", snapshot="true")


def kept(shop: World) -> dict[str, object]:
    """The bucket's objects, but for leases and for how far the stream was seen."""
    return {
        key: stored for key, stored in shop.bucket.objects.items() if "_continuity" not in key and "leases/" not in key
    }


def first_run(shop: World, run: Runner) -> dict[str, Metadata]:
    """The whole graph, from nothing."""
    found = run("source", "topic")
    deployed(shop)
    return found | run("raw", "lake", "dataset")


def test_from_nothing(fresh: World, run: Runner) -> None:
    found = first_run(fresh, run)
    assert {found[f"source/{table}"]["changes"] for table in ("orders", "customers")} == {
        "replica identity set to full, TRUNCATE is rejected from now on, cdc_heartbeat created, publication created, "
        "schema version 1 captured",
        "replica identity set to full, TRUNCATE is rejected from now on, publication extended, "
        "schema version 1 captured",
    }
    assert {found[f"topic/{table}"]["connector"] for table in ("orders", "customers")} == {
        "cdc-lake-shop: created",
        "cdc-lake-shop: unchanged",
    }
    assert found["raw/orders"]["changes"] == "manifest 1: 3 records in 1 objects"
    assert found["raw/orders"]["dagster/row_count"] == 3
    assert found["lake/orders"]["changes"] == "commit 20260001: 3 events of 3 keys"
    assert found["lake/orders"]["dagster/row_count"] == 3
    assert found["dataset/totals"]["changes"] == "view shop_lake.totals created"
    assert found["dataset/totals"]["total_total"] == 7.5
    assert found["dataset/countries"]["dagster/row_count"] == 1
    assert fresh.athena.databases == {"shop_lake"}, "the pipeline's catalog, whatever the resource's own database is"


def test_topics_take_as_large_a_record_as_the_connector_sends(
    fresh: World, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"exactly.once.support": "required", "producer.override.max.request.size": "8388608"}
    monkeypatch.setattr(topic, "connector_config", lambda *_: config)
    run("source", "topic")
    for name in (fresh.orders.topic, fresh.flow.heartbeat_topic):
        assert fresh.kafka.ensure_topic(name).topic.config["max.message.bytes"] == "8388608"


def test_every_stage_shows_schema_place_and_lineage(fresh: World, run: Runner) -> None:
    found = first_run(fresh, run)
    assert [column.name for column in found["source/orders"]["dagster/column_schema"].columns] == [
        "order_id",
        "customer_id",
        "total",
    ]
    before = "source"
    for stage in ("topic", "raw", "lake"):
        deps = found[f"{stage}/orders"]["dagster/column_lineage"].deps_by_column
        names = [column.name for column in found[f"{stage}/orders"]["dagster/column_schema"].columns]
        assert deps["order_id"] == [dg.TableColumnDep(dg.AssetKey(["shop", before, "orders"]), "order_id")]
        # Whatever a column is said to come from is a column there.
        there = {column.name for column in found[f"{before}/orders"]["dagster/column_schema"].columns}
        assert {dep.column_name for deps_of in deps.values() for dep in deps_of} <= there
        assert set(deps) <= set(names)
        before = stage
    lake = found["lake/orders"]["dagster/column_lineage"].deps_by_column
    assert {dep.column_name for dep in lake["__order"]} == {"__snapshot", "__lsn"}
    for stage in ("source", "topic", "raw", "lake"):
        assert found[f"{stage}/orders"]["dagster/uri"]
    for stage in ("topic", "raw", "lake"):
        assert found[f"{stage}/orders"]["watermark_age_seconds"] < 60


def test_again_with_nothing_new(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    objects, statements = kept(fresh), len(fresh.athena.sql.statements)
    found = run()
    assert {name: metadata["changes"] for name, metadata in found.items() if "changes" in metadata} == dict.fromkeys(
        found, UNCHANGED
    )
    assert found["topic/orders"]["connector"] == "cdc-lake-shop: unchanged"
    assert kept(fresh) == objects
    assert not [sql for sql in fresh.athena.sql.statements[statements:] if sql.startswith("CREATE")]


def test_spark_starts_ahead_where_the_run_needs_it(fresh: World, run: Runner) -> None:
    """With nothing new and without the comparison, a run has no use for it."""
    first_run(fresh, run)
    run()
    assert fresh.spark.warmed == 0
    comparing = Runner(fresh, run.instance, checks=True)
    comparing("source", "topic", "raw")
    assert fresh.spark.warmed == 0
    comparing()
    assert fresh.spark.warmed > 0


def test_spark_starts_ahead_for_records_that_a_sensor_found(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    part = run.job("shop_land").get_subset(asset_selection={fresh.orders.key("raw"), fresh.orders.key("lake")})
    assert part.execute_in_process(instance=run.instance, run_config=QUIET).success
    assert fresh.spark.warmed == 1


def test_what_only_an_interrupted_first_snapshot_told_is_swept_once(fresh: World, run: Runner) -> None:
    told: list[int] = []

    def snapshots(_name: str) -> None:
        for _ in range(0 if told else 2):  # interrupted, and taken again
            fresh.postgres.beat_silently()
            told.append(fresh.postgres.current_lsn() + 1)
            fresh.beat(snapshot="first")

    fresh.connect.listeners.append(snapshots)
    run("source")
    run("topic")
    fresh.order(1, snapshot="true")
    found = run("raw", "lake")
    assert {(spec.table.table, spec.lsn) for spec in fresh.swept} == {("orders", told[1]), ("customers", told[1])}
    assert "3 rows deleted that only an interrupted snapshot read" in found["lake/orders"]["changes"]
    assert run("lake")["lake/orders"]["changes"] == UNCHANGED
    assert len(fresh.swept) == 2


def test_sources_come_before_any_topic(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    run()
    stages = [name.partition("/")[0] for name in run.order]
    assert stages.index("topic") > max(place for place, stage in enumerate(stages) if stage == "source")


def test_all_checks_are_green_on_a_good_run(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    run = Runner(fresh, run.instance, checks=True)
    run()
    # Of each table: source, topic, raw, lake; then source and dataset.
    assert len(run.checks) == 2 * (1 + 6 + 5 + 4) + 1 + 1
    assert [name for name, passed in run.checks.items() if not passed] == []


def test_a_change_goes_through(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    fresh.order(1, total="99.00")
    fresh.delete_order(2)
    found = run("raw", "lake", "dataset")
    assert found["raw/orders"]["changes"] == "manifest 2: 2 records in 1 objects"
    assert (found["raw/orders"]["dagster/row_count"], found["raw/orders"]["manifest"]) == (5, 2)
    assert (found["lake/orders"]["dagster/row_count"], found["lake/orders"]["deleted_rows"]) == (2, 1)
    assert found["dataset/totals"]["total_total"] == 102.5
    assert found["raw/customers"]["changes"] == UNCHANGED
    assert found["dataset/totals"]["changes"] == UNCHANGED


def test_counting_raw_takes_no_longer_as_the_chain_grows(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    for number in range(10, 60):
        fresh.order(number)
        fresh.land(fresh.orders)
    assert run("raw")["raw/orders"]["dagster/row_count"] == 53
    fresh.bucket.forget_requests()
    assert run("raw")["raw/orders"]["dagster/row_count"] == 53
    assert fresh.bucket.requests["get"] <= 40


def test_raw_is_counted_anew_after_a_reset(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    fresh.kafka.make(fresh.orders.topic)
    for key in [key for key in fresh.bucket.objects if "sales.orders/" in key and "_schemas" not in key]:
        fresh.bucket.delete([key])
    fresh.order(7)
    assert run("raw")["raw/orders"]["dagster/row_count"] == 1


def test_a_topic_made_again_stops_raw(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    fresh.kafka.make(fresh.orders.topic)
    with pytest.raises(Exception, match="was deleted and re-created"):
        run("raw")


def test_a_topic_made_again_before_anything_was_landed_stops_all_stages(fresh: World, run: Runner) -> None:
    run("source", "topic")
    deployed(fresh)
    fresh.kafka.make(fresh.orders.topic)
    with pytest.raises(Exception, match=r"topic shop\.sales\.orders was deleted and made again \(id .+, now .+\)"):
        run("topic")
    with pytest.raises(Exception, match="`cdc-lake resnapshot shop` takes a new snapshot"):
        run("raw")


def test_a_table_that_joins_a_running_pipeline_waits_for_a_snapshot(fresh: World, run: Runner) -> None:
    epochs = Epochs(fresh.bucket, "shop")
    run("source", "topic")
    begun = epochs.current()
    assert begun is not None
    assert sorted(begun.starts) == ["shop.sales.cdc_heartbeat", "shop.sales.customers", "shop.sales.orders"]
    before = {topic: start for topic, start in begun.starts.items() if "customers" not in topic}
    fresh.bucket.delete([object_names.epoch_key("shop", 0)])
    epochs.begin(begun.model_copy(update={"starts": before}))
    with pytest.raises(Exception, match="customers joined pipeline shop after its snapshot: the lake would lack"):
        run("topic")


def test_a_table_that_left_the_pipeline_may_lose_its_topic(fresh: World, run: Runner) -> None:
    epochs = Epochs(fresh.bucket, "shop")
    run("source", "topic")
    begun = epochs.current()
    assert begun is not None
    fresh.bucket.delete([object_names.epoch_key("shop", 0)])
    epochs.begin(
        begun.model_copy(update={"starts": {**begun.starts, "shop.sales.left": Start(topic_id="t", offsets={})}})
    )
    deployed(fresh)
    run("topic")


def test_a_key_that_is_not_the_primary_key_is_refused(fresh: World, run: Runner) -> None:
    fresh.postgres.has("sales", "orders", fresh.postgres.columns("sales", "orders"), ("order_id", "customer_id"))
    with pytest.raises(Exception, match=r"has primary key \(order_id, customer_id\), but the YAML of shop says key"):
        run("source")


def test_no_connector_starts_on_half_a_publication(fresh: World, run: Runner) -> None:
    fresh.postgres.ensure_publication("shop_publication", [("sales", "orders"), ("sales", "cdc_heartbeat")])
    with pytest.raises(Exception, match="publication shop_publication of database shopdb lacks customers"):
        run("topic")
    assert fresh.connect.status(fresh.flow.connector) is None


def test_without_a_publication_no_connector_starts(run: Runner) -> None:
    with pytest.raises(Exception, match="lacks orders, customers, cdc_heartbeat"):
        run("topic")


def test_raw_before_topic_says_what_to_materialise(run: Runner) -> None:
    with pytest.raises(Exception, match="materialise shop/topic/"):
        run("raw")


def test_a_dataset_whose_sql_has_changed_is_made_again(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    (fresh.flow.folder / "countries.sql").write_text("SELECT DISTINCT country, customer_id FROM customers_current")
    changed = Runner(fresh, run.instance)
    found = changed("dataset")
    assert found["dataset/countries"]["changes"] == "view shop_lake.countries created"
    assert found["dataset/totals"]["changes"] == UNCHANGED


def test_a_view_that_is_gone_is_made_again(fresh: World, run: Runner) -> None:
    first_run(fresh, run)
    fresh.glue.delete_table("shop_lake", "orders_current")
    fresh.glue.delete_table("shop_lake", "totals")
    found = run("lake", "dataset")
    assert found["dataset/totals"]["changes"] == "view shop_lake.totals created"
    assert fresh.glue.get_table("shop_lake", "orders_current") is not None
