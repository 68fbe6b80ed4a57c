"""A polled pipeline over fakes: its definitions, its stages, its sensor, and its reset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError, SourceBrokenError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.source.poll_state import PollState
from cdc_lake.contract.table import lease
from cdc_lake.jobs.poll import poll as job
from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline import component
from cdc_lake.pipeline.continuous import run as continuous
from cdc_lake.pipeline.loading import MODE_VARIABLE, load
from cdc_lake.pipeline.operations import polling, reconciliation, reset
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.publishing.html_pages import Pages
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake_tests.fakes.aws.athena import FakeAthena
from cdc_lake_tests.fakes.aws.glue import FakeGlue
from cdc_lake_tests.fakes.dagster import fake_resources
from cdc_lake_tests.fakes.jobs import FakeSpark
from cdc_lake_tests.fakes.shop.shop_pipeline import write_shop
from cdc_lake_tests.fakes.source.connect import FakeConnect
from cdc_lake_tests.fakes.source.kafka import FakeKafka
from cdc_lake_tests.fakes.source.polled_postgres import PolledPostgres
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.pipeline.spec.polled_shop import QUERY
from resources.deployment import Deployment
from resources.object_store import ObjectStore
from resources.postgres.table_columns import ColumnInfo

ONE_TABLE = QUERY.partition("    - name: order_countries")[0]


def column(name: str, kind: str, place: int) -> ColumnInfo:
    """Return a column that is NOT NULL."""
    return ColumnInfo(name, kind, kind, False, place, None, "base", False)


@dataclass
class Polled:
    """The pipeline with its fakes."""

    pipeline: Pipeline
    pages: Path
    bucket: MemoryStore = field(default_factory=MemoryStore)
    store: ObjectStore = field(default_factory=lambda: ObjectStore(bucket="shop"))
    fails: bool = False
    """Whether the next job fails after it has sent its records."""

    def __post_init__(self) -> None:
        self.kafka, self.postgres, self.connect = FakeKafka(), PolledPostgres(), FakeConnect()
        self.spark = FakeSpark({job.run: self.send})
        columns = [column("order_id", "integer", 1), column("changed", "timestamp with time zone", 2)]
        self.postgres.has("sales", "orders", columns, ("order_id",))
        self.specs: list[job.PollSpec] = []

    @property
    def orders(self) -> PipelineTable:
        """The table."""
        return self.pipeline.tables[0]

    @property
    def resources(self) -> dict[str, Any]:
        """The resources by the names that assets require."""
        return {
            "postgres": self.postgres,
            "kafka": self.kafka,
            "connect": self.connect,
            "store": self.store,
            "spark": self.spark,
        }

    def send(self, spec: job.PollSpec) -> job.PollReport:
        """Do what the job does."""
        self.specs.append(spec)
        for key in self.postgres.window(spec.lower, spec.upper):
            self.kafka.send(spec.topic, json.dumps({"order_id": key, "__lsn": spec.number}).encode())
        if self.fails:
            self.fails = False
            raise ContractError("Spark has ended.")
        return job.PollReport(1, 0.1)

    def poll(self) -> polling.PollResult:
        """Poll the table."""
        source = SourcePostgres(self.postgres)
        location = S3Location("shop")
        return polling.poll(
            self.orders, polling.PollSystems(source, self.kafka, location, self.spark.run, "a test", 1.0)
        )

    def state(self) -> PollState:
        """Return the stored state."""
        found = polling.polls(self.orders, self.bucket).read()
        assert found is not None
        return found.poll

    def sent(self) -> list[tuple[int, int]]:
        """Return key and poll number of each record."""
        records = [json.loads(each.value or b"") for each in self.kafka.peek(self.orders.topic)]
        return [(record["order_id"], record["__lsn"]) for record in records]


@pytest.fixture
def polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Polled:
    """Return a pipeline that was never polled."""
    write_shop(tmp_path, ONE_TABLE)
    made = Polled(load("shop", tmp_path), tmp_path)
    monkeypatch.setattr(S3Location, "store", lambda _self: made.bucket)
    return made


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Return a Dagster instance."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def test_a_topic_with_records_of_an_earlier_deployment_is_not_read(polled: Polled) -> None:
    polled.kafka.make(polled.orders.topic)
    polled.kafka.send(polled.orders.topic, b"{}")
    with pytest.raises(ContractError, match=r"topic shop\.sales\.orders has records from an earlier deployment"):
        polled.poll()
    assert polling.polls(polled.orders, polled.bucket).read() is None
    polled.kafka.delete_topic(polled.orders.topic)
    polled.poll()


def test_a_select_without_a_file_is_reported_when_the_definitions_load(tmp_path: Path) -> None:
    folder = write_shop(tmp_path, QUERY)
    for file in folder.glob("*countries*.sql"):
        file.unlink()
    with pytest.raises(ContractError, match=r"tables\.poll\.sql: there is no file order_countries\.sql in shop/"):
        component.build(load("shop", tmp_path))


def test_definitions_have_no_connector_slot_or_heartbeat(polled: Polled) -> None:
    found = component.build(polled.pipeline)
    assert sorted(sensor.name for sensor in found.sensors or ()) == [
        "shop_apply",
        "shop_checks",
        "shop_daily_checks",
        "shop_health",
        "shop_land",
        "shop_poll",
    ]
    jobs = {each.name for each in found.jobs or ()}
    assert {"shop_poll", "shop_land", "shop_reconcile"} <= jobs
    assert "shop_connect" not in jobs
    checks = {key.name for check in found.asset_checks or () for key in check.check_keys}
    assert {"polled_column_indexed", "transactions_visible", "polls_continuous", "topic_contract"} <= checks
    assert (
        not {"connector_running", "slot_healthy", "stream_whole", "replica_identity_full", "truncate_refused"} & checks
    )
    [topic] = [each for each in found.assets or () if each.key == polled.orders.key("topic")]  # type: ignore[union-attr]
    assert "a deleted row has none" in topic.descriptions_by_key[topic.key]  # type: ignore[union-attr]


def test_source_and_topic_are_materialised(polled: Polled, instance: dg.DagsterInstance) -> None:
    polled.postgres.change(1)
    keys = {polled.orders.key("source"), polled.orders.key("topic")}
    found = component.build(polled.pipeline)
    assets = [each for each in found.assets or () if isinstance(each, dg.AssetsDefinition) and each.key in keys]
    checks = [
        each
        for each in found.asset_checks or ()
        if isinstance(each, dg.AssetChecksDefinition) and {key.asset_key for key in each.check_keys} <= keys
    ]
    checks = [each for each in checks if {key.name for key in each.check_keys} != {"watermark_fresh"}]
    result = dg.materialize([*assets, *checks], instance=instance, resources=fake_resources(**polled.resources))
    assert {each.check_name: each.passed for each in result.get_asset_check_evaluations()} == {
        "polled_column_indexed": True,
        "transactions_visible": True,
        "topic_contract": True,
        "polls_continuous": True,
    }
    [topic] = list(result.asset_materializations_for_node("shop__topic__orders_topic"))
    assert (topic.metadata["poll"].value, topic.metadata["records"].value) == (1, 1)
    assert topic.metadata["deletes"].value == "not seen by polling"
    assert polled.connect.get(polled.pipeline.connector) is None


def test_a_missing_index_is_reported_with_its_remedy(polled: Polled) -> None:
    polled.postgres.drop_index()
    [check] = [each for each in pipeline_checks.light(polled.orders) if each.key.name == "polled_column_indexed"]
    found = check.evaluate(postgres=polled.postgres)
    assert not found.passed
    assert found.metadata["remedy"].value == 'CREATE INDEX CONCURRENTLY ON "sales"."orders" ("changed")'


def test_an_interrupted_poll_is_repeated_before_the_next_one(polled: Polled) -> None:
    polled.postgres.change(1)
    polled.poll()
    polled.postgres.change(2)
    polled.fails = True
    with pytest.raises(ContractError, match="Spark has ended"):
        polled.poll()
    polled.postgres.change(3)
    assert polled.poll().polls == 2
    assert polled.sent() == [(1, 1), (2, 2), (2, 2), (3, 3)]
    first, repeated = polled.specs[1:3]
    assert (first.number, first.lower, first.upper) == (repeated.number, repeated.lower, repeated.upper)


def test_an_idle_source_advances_the_watermark_without_a_job(polled: Polled) -> None:
    polled.postgres.change(1)
    polled.poll()
    before = topic_state.current(polled.kafka, polled.orders, polled.bucket).polled
    polled.postgres.advance_clock()
    assert polled.poll().polls == 0
    after = topic_state.current(polled.kafka, polled.orders, polled.bucket).polled
    assert before is not None
    assert after is not None
    assert (after.source_ts_ms - before.source_ts_ms, after.lsn, len(polled.specs)) == (1000, 1, 1)


def test_two_tables_that_are_polled_at_once_begin_one_epoch(polled: Polled) -> None:
    rival = polling.current_epoch

    def first(key: str) -> None:
        if key.endswith("_epochs/000000.json"):
            polled.bucket.before_put = None
            rival(polled.orders, SourcePostgres(polled.postgres), polled.bucket)

    polled.bucket.before_put = first
    polled.poll()
    epoch = Epochs(polled.bucket, "shop").current()
    assert epoch is not None
    assert (epoch.number, polled.bucket.before_put) == (0, None)


def test_another_server_breaks_the_epoch(polled: Polled) -> None:
    polled.poll()
    polled.postgres.becomes(system_identifier="7000000000000000002")
    with pytest.raises(SourceBrokenError, match="is another database cluster"):
        polled.poll()
    assert Epochs(polled.bucket, "shop").broken(0) is not None


def test_a_first_poll_is_repeated_if_the_table_was_rewritten_meanwhile(
    polled: Polled, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled.postgres.change(1)
    send = polled.send

    def rewritten(spec: job.PollSpec) -> job.PollReport:
        polled.postgres.rewrite()
        return send(spec)

    with monkeypatch.context() as patch:
        patch.setattr(polled, "spark", FakeSpark({job.run: rewritten}))
        with pytest.raises(ContractError, match="Cannot complete poll 1 of table orders: the table was rewritten"):
            polled.poll()
    assert polled.state().state == "begun"
    polled.poll()
    assert polled.sent()[:2] == [(1, 1), (1, 1)]


def test_a_key_that_is_not_unique_and_a_nullable_column_are_refused(polled: Polled) -> None:
    polled.postgres.has("sales", "orders", [column("order_id", "integer", 1)], ("order_id",))
    with pytest.raises(ContractError, match="it has no column changed"):
        polled.poll()
    columns = [column("order_id", "integer", 1), column("changed", "timestamp without time zone", 2)]
    polled.postgres.has("sales", "orders", columns, ("order_id",))
    with pytest.raises(ContractError, match=r"name the TimeZone .* as poll\.time_zone"):
        polled.poll()
    columns[1] = column("changed", "timestamp(0) with time zone", 2)
    polled.postgres.has("sales", "orders", columns, ("order_id",))
    with pytest.raises(ContractError, match="can round a time to before its transaction"):
        polled.poll()
    columns[1] = column("changed", "timestamp with time zone", 2)
    polled.postgres.has("sales", "orders", columns, ("other_id",))
    with pytest.raises(ContractError, match=r"makes key \[order_id\] unique"):
        polled.poll()


def test_it_is_never_continuous(polled: Polled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODE_VARIABLE, "continuous")
    assert load("shop", polled.pages).spec.mode == "triggered"
    systems = (polled.postgres, polled.kafka, polled.store, polled.spark, FakeGlue(), FakeAthena(), "a test")
    with pytest.raises(ContractError, match=r"it has source\.kind query, whose rows the sensor shop_poll polls"):
        continuous.systems(polled.pipeline, *systems).__enter__()  # type: ignore[arg-type]


@pytest.mark.parametrize(("minutes", "fresh"), [(0, True), (5, False)])
def test_the_watermark_is_fresh_while_an_idle_source_is_polled(
    polled: Polled, instance: dg.DagsterInstance, minutes: int, fresh: bool
) -> None:
    polled.poll()
    polled.postgres.set_clock(datetime.now(UTC) - timedelta(minutes=minutes))  # the last poll was then
    assert isinstance(tick(polled, instance), dg.SkipReason)
    [check, *_] = [each for each in pipeline_checks.light(polled.orders) if each.key.name == "watermark_fresh"]
    assert check.evaluate(kafka=polled.kafka, store=polled.store).passed is fresh


def tick(polled: Polled, instance: dg.DagsterInstance) -> dg.SensorResult | dg.SkipReason:
    """Evaluate the poll sensor."""
    [sensor] = [each for each in component.build(polled.pipeline).sensors or () if each.name == "shop_poll"]
    assert isinstance(sensor, dg.SensorDefinition)
    fakes = fake_resources(postgres=polled.postgres, store=polled.store)
    with dg.build_sensor_context(instance=instance, resources=fakes, sensor_name="shop_poll") as context:
        found = sensor(context)
    assert isinstance(found, dg.SensorResult | dg.SkipReason)
    return found


def test_the_sensor_polls_changed_rows_and_advances_an_idle_source(
    polled: Polled, instance: dg.DagsterInstance
) -> None:
    never = tick(polled, instance)
    assert isinstance(never, dg.SkipReason)
    assert never.skip_message == "never polled: materialise shop/topic/orders_topic first"
    polled.postgres.change(1)
    polled.poll()
    polled.postgres.advance_clock()
    before = polled.state().upper.at
    assert isinstance(tick(polled, instance), dg.SkipReason)
    assert polled.state().upper.at > before
    polled.postgres.change(2)
    due = tick(polled, instance)
    assert isinstance(due, dg.SensorResult)
    [request] = due.run_requests or ()
    topic_id = polled.state().topic_id
    assert request.run_key == f"poll:shop.sales.orders:{topic_id}:after-1-{polled.state().upper.at.isoformat()}:0"
    assert request.job_name == "shop_poll"
    stages = [key.path[1] for key in request.asset_selection or ()]
    assert stages == ["topic"]  # the land sensor lands by the flush rule
    polled.fails = True
    with pytest.raises(ContractError):
        polled.poll()
    begun = tick(polled, instance)
    assert isinstance(begun, dg.SensorResult)
    assert [each.run_key for each in begun.run_requests or ()] == [f"poll:shop.sales.orders:{topic_id}:begun-2:0"]


def test_the_sensor_polls_again_after_a_run_that_found_no_row(polled: Polled, instance: dg.DagsterInstance) -> None:
    polled.poll()
    polled.postgres.advance_clock()
    polled.postgres.change(1)
    first = tick(polled, instance)
    polled.postgres.change_at_bound(1)  # before the run: the row is in a later window
    assert polled.poll().polls == 0
    polled.postgres.advance_clock()
    second = tick(polled, instance)
    assert isinstance(first, dg.SensorResult)
    assert isinstance(second, dg.SensorResult)
    keys = [request.run_key for each in (first, second) for request in each.run_requests or ()]
    assert len(set(keys)) == 2, "Dagster launches each run key once"


def test_the_sensor_waits_for_a_poller(polled: Polled, instance: dg.DagsterInstance) -> None:
    polled.poll()
    polled.postgres.advance_clock()
    polled.postgres.change(1)
    polled.fails = True
    with pytest.raises(ContractError):
        polled.poll()
    with lease.held(polled.bucket, object_names.poll_lease_key("shop", "orders"), "a long run"):
        waiting = tick(polled, instance)
    assert isinstance(waiting, dg.SkipReason)
    assert waiting.skip_message == "a long run polls or reconciles the table"
    assert isinstance(tick(polled, instance), dg.SensorResult)


def test_the_sensor_does_not_advance_on_another_server(polled: Polled, instance: dg.DagsterInstance) -> None:
    polled.poll()
    polled.postgres.advance_clock()
    before = polled.state().upper.at
    polled.postgres.becomes(system_identifier="7000000000000000002")
    found = tick(polled, instance)
    assert isinstance(found, dg.SkipReason)
    assert "is another database cluster" in str(found.skip_message)
    assert polled.state().upper.at == before


def test_a_reconciliation_needs_the_server_of_the_polls(polled: Polled) -> None:
    polled.poll()
    polled.postgres.becomes(system_identifier="7000000000000000002")
    systems = polling.PollSystems(
        SourcePostgres(polled.postgres), polled.kafka, S3Location("shop"), polled.spark.run, "a test", 1.0
    )
    with pytest.raises(SourceBrokenError, match="is another database cluster"):
        reconciliation.reconcile(polled.orders, systems)


def test_reset_deletes_topics_and_state_and_needs_no_connector(polled: Polled) -> None:
    polled.postgres.change(1)
    polled.poll()
    deployment = Deployment(profile="local", source_host="h", password_reference="p", pages=str(polled.pages))
    lines = list(
        reset.reset(
            polled.pipeline,
            SourcePostgres(polled.postgres),
            polled.kafka,
            polled.connect,
            FakeGlue(),
            polled.bucket,
            deployment,
            Pages(deployment=deployment),
            1.0,
        )
    )
    assert "topic shop.sales.orders" in lines
    assert not any("connector" in line or "slot" in line for line in lines)
    assert polling.polls(polled.orders, polled.bucket).read() is None
    assert polled.poll().poll.number == 1
