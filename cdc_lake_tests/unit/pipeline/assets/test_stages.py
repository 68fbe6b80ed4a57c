"""The stages on fakes, end to end: the first run, a run without changes, and a run after a change."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.source.epochs import Epochs, Start
from cdc_lake.pipeline.assets import topic
from cdc_lake.pipeline.assets.standard_metadata import UNCHANGED
from cdc_lake.pipeline.checks import topic as topic_checks
from cdc_lake_tests.fakes.dagster import QUIET, evaluate
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline import stage_runner
from cdc_lake_tests.unit.pipeline.stage_runner import Metadata, Runner
from resources.postgres.table_columns import ColumnInfo


@pytest.fixture
def fresh(shop: Shop) -> Shop:
    """The shop without connector, slot, topics and objects."""
    for name in shop.kafka.topics():
        shop.kafka.delete_topic(name)
    shop.connect.delete(shop.pipeline.connector)
    shop.postgres.drop_slot(shop.pipeline.slot)
    shop.bucket.objects.clear()
    return shop


@pytest.fixture
def run(fresh: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """Yield a Runner of the shop without connector, slot, topics and objects."""
    monkeypatch.setattr(
        topic, "connector_config", lambda *_: {"connector.class": "Debezium", "exactly.once.support": "required"}
    )
    with dg.DagsterInstance.ephemeral() as instance:
        yield Runner(fresh, instance)


def start_debezium(shop: Shop) -> None:
    """Do what Debezium does at its first start: create the slot and send the rows as a snapshot."""
    shop.postgres.put_slot(shop.pipeline.slot)
    shop.customer("ANNE")
    for number in (1, 2, 3):
        shop.order(number, total=f"{number}.50", snapshot="true")


def lasting_objects(shop: Shop) -> dict[str, object]:
    """Return the bucket's objects without leases and continuity records."""
    return {
        key: stored for key, stored in shop.bucket.objects.items() if "_continuity" not in key and "leases/" not in key
    }


def first_run(shop: Shop, run: Runner) -> dict[str, Metadata]:
    """Materialise the whole graph for the first time."""
    found = run("source", "topic")
    start_debezium(shop)
    return found | run("raw", "lake", "dataset")


def test_a_topic_with_records_of_an_earlier_deployment_is_not_read(fresh: Shop, run: Runner) -> None:
    fresh.kafka.make(fresh.orders.topic)
    fresh.order(1)
    fault = "Cannot start pipeline shop: topic shop.sales.orders has records from an earlier deployment"
    with pytest.raises(Exception, match=fault):
        run("source", "topic")
    assert fresh.connect.get(fresh.pipeline.connector) is None
    assert Epochs(fresh.bucket, "shop").current() is None


def test_the_first_run_creates_everything(fresh: Shop, run: Runner) -> None:
    found = first_run(fresh, run)
    assert {found[f"source/{table}_source"]["changes"] for table in ("orders", "customers")} == {
        "replica identity set to full, TRUNCATE is rejected from now on, cdc_heartbeat created, "
        "cdc_signal_shop created, publication created, "
        "schema version 1 captured",
        "replica identity set to full, TRUNCATE is rejected from now on, publication extended, "
        "schema version 1 captured",
    }
    assert {found[f"topic/{table}_topic"]["connector"] for table in ("orders", "customers")} == {
        "cdc-lake-shop: created",
        "cdc-lake-shop: unchanged",
    }
    assert found["raw/orders_raw"]["changes"] == "manifest 1: 3 records in 1 object"
    assert found["raw/orders_raw"]["dagster/row_count"] == 3
    assert found["lake/orders_lake"]["changes"] == "commit 20260001000000000: 3 events of 3 keys"
    assert found["lake/orders_lake"]["dagster/row_count"] == 3
    raw_bytes = found["raw/orders_raw"]["bytes"]
    assert found["lake/orders_lake"]["raw_bytes"] == raw_bytes
    assert found["lake/orders_lake"]["write_amplification"] == round(100 / raw_bytes, 3), "a commit writes 100 bytes"
    assert found["dataset/totals"]["changes"] == "view shop_lake.totals created"
    assert found["dataset/totals"]["total_total"] == 7.5
    assert found["dataset/countries"]["dagster/row_count"] == 1
    assert fresh.athena.databases == {"shop_lake"}, "the pipeline's catalog, not the resource's own database"


def test_topics_accept_records_as_large_as_the_connector_sends(
    fresh: Shop, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"exactly.once.support": "required", "producer.override.max.request.size": "8388608"}
    monkeypatch.setattr(topic, "connector_config", lambda *_: config)
    run("source", "topic")
    for name in (fresh.orders.topic, fresh.pipeline.heartbeat_topic):
        assert fresh.kafka.ensure_topic(name).topic.config["max.message.bytes"] == "8388608"


def test_every_stage_shows_schema_uri_and_lineage(fresh: Shop, run: Runner) -> None:
    found = first_run(fresh, run)
    assert [column.name for column in found["source/orders_source"]["dagster/column_schema"].columns] == [
        "order_id",
        "customer_id",
        "total",
    ]
    before = "source"
    for stage in ("topic", "raw", "lake"):
        deps = found[f"{stage}/orders_{stage}"]["dagster/column_lineage"].deps_by_column
        names = [column.name for column in found[f"{stage}/orders_{stage}"]["dagster/column_schema"].columns]
        assert deps["order_id"] == [dg.TableColumnDep(dg.AssetKey(["shop", before, f"orders_{before}"]), "order_id")]
        # Every upstream column in the lineage exists in the upstream schema.
        upstream_columns = {
            column.name for column in found[f"{before}/orders_{before}"]["dagster/column_schema"].columns
        }
        assert {dep.column_name for deps_of in deps.values() for dep in deps_of} <= upstream_columns
        assert set(deps) <= set(names)
        before = stage
    lake = found["lake/orders_lake"]["dagster/column_lineage"].deps_by_column
    assert {dep.column_name for dep in lake["__order"]} == {"__snapshot", "__lsn"}
    for stage in ("source", "topic", "raw", "lake"):
        assert found[f"{stage}/orders_{stage}"]["dagster/uri"]
    for stage in ("topic", "raw", "lake"):
        assert found[f"{stage}/orders_{stage}"]["watermark_age_seconds"] < 60


def test_the_source_shows_the_columns_that_are_not_captured(
    fresh: Shop, run: Runner, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stage_runner, "QUIET", None)
    place = ColumnInfo("place", "point", "point", True, 9, None, "base", False)
    fresh.postgres.has("sales", "orders", (*fresh.postgres.columns("sales", "orders"), place), ("order_id",))
    found = run("source", "topic")
    reason = "place (the lake has no type for PostgreSQL's point)"
    assert found["source/orders_source"]["omitted_columns"] == reason
    assert "omitted_columns" not in found["source/customers_source"]
    for stage in ("source", "topic"):
        shown = found[f"{stage}/orders_{stage}"]["dagster/column_schema"].columns
        assert "place" not in [column.name for column in shown]
    assert (
        f"sales.orders: these columns cannot be captured, and are not in the lake: {reason}" in capfd.readouterr().err
    )


def test_a_second_run_without_changes_writes_nothing(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    objects, statements = lasting_objects(fresh), len(fresh.athena.sql.statements)
    found = run()
    assert {name: metadata["changes"] for name, metadata in found.items() if "changes" in metadata} == dict.fromkeys(
        found, UNCHANGED
    )
    assert found["topic/orders_topic"]["connector"] == "cdc-lake-shop: unchanged"
    assert lasting_objects(fresh) == objects
    assert not [sql for sql in fresh.athena.sql.statements[statements:] if sql.startswith("CREATE")]


def test_spark_is_warmed_only_in_runs_that_need_it(fresh: Shop, run: Runner) -> None:
    """Spark is warmed for the lake's check equals_source, and not for a run that possibly finds no new records."""
    first_run(fresh, run)
    run()
    assert fresh.spark.warmed == 0
    with_checks = Runner(fresh, run.instance, checks=True)
    with_checks("source", "topic", "raw")
    assert fresh.spark.warmed == 0
    with_checks()
    assert fresh.spark.warmed > 0


def test_spark_is_warmed_for_records_that_a_sensor_found(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    part = run.resolve_job("shop_land").get_subset(asset_selection={fresh.orders.key("raw"), fresh.orders.key("lake")})
    assert part.execute_in_process(instance=run.instance, run_config=QUIET).success
    assert fresh.spark.warmed == 1


def test_rows_that_only_an_interrupted_first_snapshot_had_read_are_swept_once(fresh: Shop, run: Runner) -> None:
    snapshot_lsns: list[int] = []

    def snapshots(_name: str) -> None:
        for _ in range(0 if snapshot_lsns else 2):  # the first one is interrupted and repeated
            fresh.postgres.advance_wal()
            snapshot_lsns.append(fresh.postgres.current_lsn() + 1)
            fresh.write_heartbeat(snapshot="first")

    fresh.connect.listeners.append(snapshots)
    run("source")
    run("topic")
    fresh.order(1, snapshot="true")
    found = run("raw", "lake")
    assert {(spec.table.table, spec.lsn) for spec in fresh.swept} == {
        ("orders", snapshot_lsns[1]),
        ("customers", snapshot_lsns[1]),
    }
    assert "deleted 3 rows that only an interrupted snapshot had read" in found["lake/orders_lake"]["changes"]
    assert run("lake")["lake/orders_lake"]["changes"] == UNCHANGED
    assert len(fresh.swept) == 2


def test_all_sources_materialise_before_any_topic(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    run()
    stages = [name.partition("/")[0] for name in run.order]
    assert stages.index("topic") > max(place for place, stage in enumerate(stages) if stage == "source")


def test_all_checks_pass_on_a_good_run(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    run = Runner(fresh, run.instance, checks=True)
    run()
    # Per table: the checks of source, topic, raw and lake; then one SQL check of the source and one check of a dataset.
    assert len(run.checks) == 2 * (1 + 6 + 5 + 4) + 1 + 1
    assert [name for name, passed in run.checks.items() if not passed] == []


def test_a_change_is_carried_through_all_stages(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    fresh.order(1, total="99.00")
    fresh.delete_order(2)
    found = run("raw", "lake", "dataset")
    assert found["raw/orders_raw"]["changes"] == "manifest 2: 2 records in 1 object"
    assert (found["raw/orders_raw"]["dagster/row_count"], found["raw/orders_raw"]["manifest"]) == (5, 2)
    assert (found["lake/orders_lake"]["dagster/row_count"], found["lake/orders_lake"]["deleted_rows"]) == (2, 1)
    assert found["dataset/totals"]["total_total"] == 102.5
    assert found["raw/customers_raw"]["changes"] == UNCHANGED
    assert found["dataset/totals"]["changes"] == UNCHANGED


def test_counting_raw_records_costs_the_same_on_a_longer_chain(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    for number in range(10, 60):
        fresh.order(number)
        fresh.land(fresh.orders)
    assert run("raw")["raw/orders_raw"]["dagster/row_count"] == 53
    fresh.bucket.forget_requests()
    assert run("raw")["raw/orders_raw"]["dagster/row_count"] == 53
    assert fresh.bucket.requests["get"] <= 40


def test_raw_records_are_recounted_after_a_reset(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    fresh.kafka.make(fresh.orders.topic)
    for key in [key for key in fresh.bucket.objects if "sales.orders/" in key and "_schemas" not in key]:
        fresh.bucket.delete([key])
    fresh.bucket.delete([object_names.epoch_key("shop", 0)])
    fresh.order(7)
    assert run("raw")["raw/orders_raw"]["dagster/row_count"] == 1


def test_a_recreated_topic_stops_raw(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    fresh.kafka.make(fresh.orders.topic)
    with pytest.raises(Exception, match="was deleted and re-created"):
        run("raw")


def test_a_topic_recreated_before_the_first_landing_stops_all_stages_of_its_table(fresh: Shop, run: Runner) -> None:
    run("source", "topic")
    start_debezium(fresh)
    fresh.kafka.make(fresh.orders.topic)
    with pytest.raises(Exception, match=r"topic shop\.sales\.orders was deleted and re-created \(id .+, now .+\)"):
        run("topic", table="orders")
    with pytest.raises(Exception, match="`cdc-lake resnapshot shop` continues from a new snapshot"):
        run("raw", table="orders")


@pytest.mark.parametrize("recreated", [True, False], ids=["recreated", "deleted"])
def test_a_lost_topic_does_not_stop_the_other_tables(fresh: Shop, run: Runner, recreated: bool) -> None:
    first_run(fresh, run)
    fresh.kafka.delete_topic(fresh.orders.topic)
    if recreated:
        fresh.kafka.make(fresh.orders.topic)
    fresh.customer("BOB")
    found = run("topic", "raw", "lake", table="customers")
    assert found["raw/customers_raw"]["records"] == 1
    assert found["lake/customers_lake"]["dagster/row_count"] == 2
    with pytest.raises(Exception, match=r"topic shop\.sales\.orders"):
        run("raw", table="orders")
    checks = {
        table.name: evaluate(
            topic_checks._stream_whole(table),
            **{name: fresh.resolved[name] for name in ("postgres", "kafka", "connect", "store")},
        ).passed
        for table in fresh.pipeline.tables
    }
    assert checks == {"orders": False, "customers": True}


def test_a_table_that_left_the_pipeline_may_lose_its_topic(fresh: Shop, run: Runner) -> None:
    epochs = Epochs(fresh.bucket, "shop")
    run("source", "topic")
    begun = epochs.current()
    assert begun is not None
    fresh.bucket.delete([object_names.epoch_key("shop", 0)])
    epochs.begin(
        begun.model_copy(update={"starts": {**begun.starts, "shop.sales.left": Start(topic_id="t", offsets={})}})
    )
    start_debezium(fresh)
    run("topic")


def test_a_key_that_is_not_the_primary_key_is_rejected(fresh: Shop, run: Runner) -> None:
    fresh.postgres.has("sales", "orders", fresh.postgres.columns("sales", "orders"), ("order_id", "customer_id"))
    with pytest.raises(Exception, match=r"has primary key \(order_id, customer_id\), but the YAML of shop has key"):
        run("source")


def test_no_connector_starts_on_an_incomplete_publication(fresh: Shop, run: Runner) -> None:
    fresh.postgres.ensure_publication("shop_publication", [("sales", "orders"), ("sales", "cdc_heartbeat")])
    with pytest.raises(Exception, match="publication shop_publication of database shopdb lacks customers"):
        run("topic")
    assert fresh.connect.status(fresh.pipeline.connector) is None


def test_without_a_publication_no_connector_starts(run: Runner) -> None:
    with pytest.raises(Exception, match="lacks orders, customers, cdc_heartbeat"):
        run("topic")


def test_raw_before_topic_names_the_asset_to_materialise(run: Runner) -> None:
    with pytest.raises(Exception, match="Materialise shop/topic/"):
        run("raw")


def test_a_dataset_is_recreated_when_its_sql_changes(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    (fresh.pipeline.folder / "countries.sql").write_text("SELECT DISTINCT country, customer_id FROM customers_current")
    changed = Runner(fresh, run.instance)
    found = changed("dataset")
    assert found["dataset/countries"]["changes"] == "view shop_lake.countries created"
    assert found["dataset/totals"]["changes"] == UNCHANGED


def test_a_deleted_view_is_recreated(fresh: Shop, run: Runner) -> None:
    first_run(fresh, run)
    fresh.glue.delete_table("shop_lake", "orders_current")
    fresh.glue.delete_table("shop_lake", "totals")
    found = run("lake", "dataset")
    assert found["dataset/totals"]["changes"] == "view shop_lake.totals created"
    assert fresh.glue.get_table("shop_lake", "orders_current") is not None
