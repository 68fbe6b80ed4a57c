"""A table that is added to a running pipeline: its incremental snapshot, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import dagster as dg
import pytest

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import TableIncompleteError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.source.epochs import Completion, Epoch, Epochs
from cdc_lake.pipeline.assets import topic
from cdc_lake.pipeline.assets.standard_metadata import UNCHANGED
from cdc_lake.pipeline.checks import topic as topic_checks
from cdc_lake.pipeline.operations import verification
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.stage_runner import Runner
from resources.connect.config_template import table_pattern
from resources.postgres.table_columns import ColumnInfo

FAILPOINTS = (
    "join.after_record",
    "join.after_stop",
    "topic.before_connector",
    "topic.after_connector",
    "join.after_signal",
    "join.after_snapshot",
)


@pytest.fixture
def run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """Materialises the shop, which ran with the orders only; now it has the customers too."""
    monkeypatch.setattr(
        topic,
        "connector_config",
        lambda pipeline, *_: {
            "exactly.once.support": "required",
            "table.include.list": table_pattern(("sales", table.name) for table in pipeline.tables),
        },
    )
    for name in shop.kafka.topics():
        shop.kafka.delete_topic(name)
    shop.connect.delete(shop.pipeline.connector)
    shop.postgres.drop_slot(shop.pipeline.slot)
    shop.bucket.objects.clear()
    both, shop.pipeline = shop.pipeline, only_orders(shop.pipeline)
    with dg.DagsterInstance.ephemeral() as instance:
        Runner(shop, instance)("source", "topic")
        shop.pipeline = both
        shop.streaming = False
        for name in ("ANNE", "BOB"):
            shop.customer(name)
        shop.streaming = True
        found = Runner(shop, instance)
        found("source")
        shop.steps.done.clear()
        yield found


def only_orders(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline without the customers."""
    source = pipeline.spec.source.model_copy(update={"tables": ["orders"], "checks": []})
    changes = {"source": source, "tables": pipeline.spec.tables[:1], "datasets": []}
    return replace(pipeline, spec=pipeline.spec.model_copy(update=changes))


def current(shop: Shop) -> Epoch:
    """Return the current epoch."""
    found = Epochs(shop.bucket, "shop").current()
    assert found is not None
    return found


def check_added(shop: Shop, run: Runner) -> None:
    """Assert that the customers were read once, and are landed."""
    assert (set(current(shop).joins), current(shop).joining) == ({shop.customers.topic}, frozenset())
    run("raw")
    assert [event["customer_id"] for event in shop.raw_events("customers")] == ["ANNE", "BOB"]
    assert list(shop.postgres.signals.values()) == ["customers"]
    assert run("topic")["topic/customers_topic"]["changes"] == UNCHANGED


def test_a_table_is_added_by_an_incremental_snapshot(shop: Shop, run: Runner) -> None:
    found = run("topic")
    assert shop.steps.done == ["stop cdc-lake-shop"], "a task with the old configuration would ignore the signal"
    changes = ", ".join(found[f"topic/{table}_topic"]["changes"] for table in ("orders", "customers"))
    assert "connector cdc-lake-shop updated" in changes
    assert found["topic/customers_topic"]["changes"].endswith("table customers added to epoch 0")
    config = shop.connect.get(shop.pipeline.connector) or {}
    assert config["signal.data.collection"] == "sales.cdc_signal_shop"
    assert config["notification.sink.topic.name"] == shop.pipeline.notification_topic
    check_added(shop, run)


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_an_interrupted_addition_can_be_continued(
    shop: Shop, run: Runner, monkeypatch: pytest.MonkeyPatch, failpoint: str
) -> None:
    failpoints._passes.clear()
    monkeypatch.setenv(failpoints.VARIABLE, f"{failpoint}=raise")
    with pytest.raises(failpoints.FailpointReached, match=failpoint):
        run("topic")
    monkeypatch.delenv(failpoints.VARIABLE)
    run("topic")
    check_added(shop, run)


def test_nothing_of_a_table_is_read_before_it_is_complete(shop: Shop, run: Runner) -> None:
    shop.snapshot_statuses.append("")
    with pytest.raises(Exception, match="Materialise shop/topic/customers_topic again to wait for its end"):
        run("topic", table="customers")
    shop.customer("CLEO")
    with pytest.raises(Exception, match=r"table customers is being added to pipeline shop.* Materialise shop/topic/"):
        run("raw", table="customers")
    systems = verification.VerifySystems(shop.source, shop.kafka, shop.connect, shop.store, shop.spark)
    with pytest.raises(TableIncompleteError):
        verification.verify_applied(shop.customers, systems, seconds=1)
    check = evaluate(
        topic_checks._stream_whole(shop.customers),
        **{name: shop.resolved[name] for name in ("postgres", "kafka", "connect", "store")},
    )
    assert not check.passed
    assert check.metadata["repair"].value == "materialise shop/topic/customers_topic"
    run("raw", table="orders")


def test_a_scan_that_debezium_gave_up_is_requested_again(shop: Shop, run: Runner) -> None:
    shop.snapshot_statuses.append("SQL_EXCEPTION")
    with pytest.raises(Exception, match=r"Debezium gave up its incremental snapshot \(SQL_EXCEPTION\)"):
        run("topic", table="customers")
    assert current(shop).joining == {shop.customers.topic}
    run("topic")
    assert [signal[-2:] for signal in shop.postgres.signals] == ["-0", "-1"]
    assert current(shop).joining == frozenset()


def test_an_empty_table_is_added(shop: Shop, run: Runner) -> None:
    shop.snapshot_statuses.append("EMPTY")
    run("topic")
    assert current(shop).joining == frozenset()


def test_a_transaction_from_before_the_publication_is_awaited(shop: Shop, run: Runner) -> None:
    shop.postgres.hold_transaction(998)
    with pytest.raises(Exception, match=r"all transactions before 1000 to end, .* changed customers .*Last state: 998"):
        run("topic")
    assert shop.steps.done == [], "the connector still runs"
    shop.postgres.hold_transaction(None)
    run("topic")
    check_added(shop, run)


def test_a_table_that_was_left_out_for_a_while_needs_a_resnapshot(shop: Shop, run: Runner) -> None:
    run("topic")
    both, shop.pipeline = shop.pipeline, only_orders(shop.pipeline)
    Runner(shop, run.instance)("topic")
    shop.pipeline = both
    fault = r"it does not capture customers, which .* Run `cdc-lake resnapshot shop`"
    with pytest.raises(Exception, match=fault):
        run("topic")
    # As if the resnapshot had failed on MSK Connect, which deletes a connector to stop it.
    shop.connect.delete(shop.pipeline.connector, offsets=False)
    for _ in range(2):
        with pytest.raises(Exception, match=fault):
            run("topic")


def test_without_the_connector_a_transaction_from_before_the_publication_is_awaited(shop: Shop, run: Runner) -> None:
    shop.connect.delete(shop.pipeline.connector, offsets=False)
    shop.postgres.hold_transaction(998)
    with pytest.raises(Exception, match=r"all transactions before 1000 to end, .* changed customers .*Last state: 998"):
        run("topic")
    shop.postgres.hold_transaction(None)
    run("topic")
    check_added(shop, run)


def test_a_topic_with_records_needs_a_resnapshot(shop: Shop, run: Runner) -> None:
    shop.kafka.make(shop.customers.topic)
    shop.kafka.send(shop.customers.topic, b"{}")
    with pytest.raises(Exception, match=r"customers already has records: .* Run `cdc-lake resnapshot shop`"):
        run("topic")
    assert current(shop).joins == {}


def test_a_first_snapshot_has_to_be_complete(shop: Shop, run: Runner) -> None:
    shop.bucket.delete([object_names.epoch_key("shop", 0, "complete")])
    with pytest.raises(
        Exception, match=r"the pipeline's first snapshot is not complete\. Remove the table from the YAML"
    ):
        run("topic")


def test_a_table_with_a_generated_column_needs_a_resnapshot(shop: Shop, run: Runner) -> None:
    more = ColumnInfo("more", "integer", "integer", True, 9, None, "base", True)
    shop.postgres.has("sales", "customers", (*shop.postgres.columns("sales", "customers"), more), ("customer_id",))
    with pytest.raises(
        Exception, match=r"incremental snapshot of table sales\.customers: its column more is generated or omitted"
    ):
        run("topic")
    assert current(shop).joins == {}


def test_a_later_epoch_is_opened_for_the_table(shop: Shop, run: Runner) -> None:
    epochs = Epochs(shop.bucket, "shop")
    epochs.begin(current(shop).model_copy(update={"number": 1, "attempt": "later"}))
    done = epochs.completion(0)
    assert done is not None
    epochs.complete(1, Completion(snapshot_lsn=1, completed_at=done.completed_at))
    run("topic")
    head = Chain(shop.bucket, "shop", shop.customers.topic).head()
    assert head is not None
    assert (head.number, head.epoch, head.opens) == (1, 1, current(shop).reason)
    run("raw", table="customers")
    assert [event["customer_id"] for event in shop.raw_events("customers")] == ["ANNE", "BOB"]


def test_without_the_signal_table_no_table_is_added(shop: Shop, run: Runner) -> None:
    shop.postgres.drop_publication("shop_publication")
    names = ("orders", "customers", "cdc_heartbeat")
    shop.postgres.ensure_publication("shop_publication", [("sales", name) for name in names])
    with pytest.raises(Exception, match="lacks cdc_signal_shop"):
        run("topic")
