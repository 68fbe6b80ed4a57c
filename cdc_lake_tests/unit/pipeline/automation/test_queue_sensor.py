"""The sensor on the queue: the runs of the listing sensors, sooner; nothing that a message does can change which."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import boto3
import dagster as dg
import pytest
from botocore.client import BaseClient
from moto import mock_aws

from cdc_lake import profile
from cdc_lake.contract.objects import object_names
from cdc_lake.pipeline import component
from cdc_lake.pipeline.automation import queue_sensor, run_requests, sensor_intervals
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.sensor_intervals import SensorIntervals
from cdc_lake.pipeline.checks import all_checks
from cdc_lake.pipeline.naming import Flow
from cdc_lake_tests.fake_pipeline import World, world
from cdc_lake_tests.fakes.dagster import bound
from cdc_lake_tests.sink_objects import LENSES, named, written
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders
from resources.aws.sqs import Sqs


def sensor(flow: Flow, built: dg.Definitions) -> dg.SensorDefinition:
    """The sensor of one pipeline."""
    definitions = {job.name: job for job in built.jobs or ()}
    return queue_sensor.build([(flow, Jobs(flow, all_checks.build(flow)))], definitions)


@dataclass
class Hearing(Daemon):
    """Evaluates the events' sensor over a queue of moto's."""

    client: Any = None
    queue: Sqs = field(default_factory=lambda: Sqs(queue_url=""))
    repository: dg.RepositoryDefinition | None = None

    def told(self, *keys: str, bucket: str = "shop") -> None:
        """S3 tells of objects, a message each."""
        for key in keys:
            place = {"bucket": {"name": bucket}, "object": {"key": key.replace("+", "%2B")}}
            self.sent(json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": place}]}))

    def sent(self, body: str) -> None:
        """Somebody sends a message."""
        self.client.send_message(QueueUrl=self.queue.queue_url, MessageBody=body)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        """One evaluation, with the code location's asset graph."""
        fakes = bound(kafka=self.shop.kafka, store=self.shop.store, queue=self.queue)
        with dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            resources=fakes,
            sensor_name=queue_sensor.NAME,
            repository_def=self.repository,
        ) as context:
            found = self.sensor(context)
            self.cursor = context.cursor
        assert isinstance(found, dg.SensorResult | dg.SkipReason)
        return found

    @property
    def messages(self) -> int:
        """What is in the queue, hidden or not."""
        of = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        counted = self.client.get_queue_attributes(QueueUrl=self.queue.queue_url, AttributeNames=of)["Attributes"]
        return sum(int(counted[name]) for name in of)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> dg.RepositoryDefinition:
    """The code location with the sensor, of which a tick needs the asset graph."""
    there = world(tmp_path_factory.mktemp("shop"), 0.0)
    built = component.build(there.flow)
    own = dg.Definitions(
        sensors=[sensor(there.flow, built)], resources=bound(**there.resources, queue=Sqs(queue_url=""))
    )
    found: dg.RepositoryDefinition = dg.Definitions.merge(built, own).get_repository_def()
    return found


@pytest.fixture(scope="module")
def sqs() -> Iterator[Any]:
    """SQS; making a client takes longer than most tests here."""
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret")


@pytest.fixture(scope="module")
def any_queue(sqs: BaseClient) -> Sqs:
    """The resource, with its client made."""
    made = Sqs(
        queue_url=sqs.create_queue(QueueName="any")["QueueUrl"],
        access_key="key",
        secret_key="secret",
        wait_seconds=0,
        attempts=1,
    )
    made.receive()
    return made


@pytest.fixture
def hearing(
    shop: World,
    instance: dg.DagsterInstance,
    clock: Clock,
    repository: dg.RepositoryDefinition,
    sqs: BaseClient,
    any_queue: Sqs,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Hearing]:
    """The events' sensor, and a queue with its dead-letter queue."""
    monkeypatch.setattr(queue_sensor, "time", SimpleNamespace(time=clock.time))
    dead = sqs.create_queue(QueueName="unhandled")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
    url = sqs.create_queue(QueueName="events", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    queue = any_queue.model_copy(update={"queue_url": url})
    yield Hearing(
        shop,
        sensor(shop.flow, component.build(shop.flow)),
        instance,
        clock,
        client=sqs,
        queue=queue,
        repository=repository,
    )
    for each in (url, dead):
        sqs.delete_queue(QueueUrl=each)


def landed(shop: World, first: int = 1) -> str:
    """A new order is landed; its manifest's key."""
    orders(shop, 1, first=first)
    shop.land(shop.orders)
    return object_names.manifest_key("shop", shop.orders.topic, first)


def test_a_manifest_launches_what_the_listing_sensor_would(shop: World, hearing: Hearing, apply: Daemon) -> None:
    assert hearing.skip() == "no message reports a new object of a pipeline"
    hearing.told(landed(shop))
    request = hearing.request()
    expected = apply.request()
    assert (request.run_key, request.tags) == (expected.run_key, expected.tags)
    assert request.asset_selection is not None
    assert (request.job_name, request.asset_selection) == (expected.job_name, expected.asset_selection)
    assert request.asset_check_keys == expected.asset_check_keys


def test_messages_are_deleted_after_the_request_was_kept(shop: World, hearing: Hearing) -> None:
    hearing.told(landed(shop))
    cursor = hearing.cursor
    hearing.request()
    assert hearing.messages == 1
    # The daemon ended before it had kept the tick: the message is hidden for a while, and listing finds the manifest.
    hearing.cursor = cursor
    hearing.skip()
    assert hearing.messages == 1


def test_the_next_tick_deletes(shop: World, hearing: Hearing) -> None:
    hearing.told(landed(shop))
    hearing.request()
    hearing.skip()
    assert hearing.messages == 0


def test_repeated_and_late_messages_change_nothing(shop: World, hearing: Hearing, apply: Daemon) -> None:
    keys = [landed(shop, number) for number in (1, 2, 3)]
    told = keys * 3
    random.Random(1).shuffle(told)
    hearing.told(*told)
    assert hearing.request().run_key == apply.request().run_key
    hearing.skip()
    assert hearing.messages == 0
    shop.apply(shop.orders)
    hearing.told(*told)
    assert "everything that is landed is applied" in hearing.skip()
    hearing.skip()
    assert hearing.messages == 0


def test_no_more_is_held_than_a_cursor_should(shop: World, hearing: Hearing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_sensor, "_MAX_WAITING_MESSAGES", 1)
    key = landed(shop)
    shop.bucket.write(key, b"{}")  # a broken table's messages are held
    hearing.told(key)
    hearing.skip()
    hearing.told(key, key)
    hearing.skip()
    of = ["ApproximateNumberOfMessages"]
    waiting = hearing.client.get_queue_attributes(QueueUrl=hearing.queue.queue_url, AttributeNames=of)["Attributes"]
    assert waiting == {"ApproximateNumberOfMessages": "2"}


def test_lost_messages_change_nothing(shop: World, hearing: Hearing, apply: Daemon) -> None:
    landed(shop)
    assert hearing.skip() == "no message reports a new object of a pipeline"
    assert apply.request().run_key == "apply:shop.sales.orders:id-1:manifests-1-1:0"


def test_one_run_at_a_time_whoever_launches_it(shop: World, hearing: Hearing, apply: Daemon) -> None:
    key = landed(shop)
    run = apply.run()
    hearing.told(key)
    assert f"run {run.run_id} of shop_orders_apply is active" in hearing.skip()
    hearing.skip()
    assert hearing.messages == 0, "a long run must not send it to the dead letters"
    hearing.instance.report_run_canceling(run)
    hearing.instance.report_run_canceled(run)
    hearing.clock.go(run_requests.BACKOFF_SECONDS[0] + 1)
    hearing.request()
    assert hearing.skip() == "no message reports a new object of a pipeline"


@pytest.mark.parametrize("body", ["hello", "{}", '{"Records": 1}'])
def test_what_nobody_can_read_goes_to_the_dead_letters(
    hearing: Hearing, clock: Clock, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hearing.queue = hearing.queue.model_copy(update={"visibility_seconds": 0})
    hearing.sent(body)
    for receipt in (1, 2, 3):
        hearing.skip()
        said = capsys.readouterr().err
        assert "is not an S3 event" in said
        assert f"this was number {receipt})" in said
    hearing.skip()
    assert hearing.messages == 0
    clock.go(301)
    hearing.skip()
    assert "arn:aws:sqs:us-east-1:123456789012:unhandled is not empty (messages: 1)" in capsys.readouterr().err


def test_objects_that_call_for_nothing_are_forgotten(shop: World, hearing: Hearing) -> None:
    item = landed(shop)
    hearing.told(item, bucket="another")
    hearing.told("raw/shop/_schemas/x", "raw/other/t/_manifests/1.json", f"raw/shop/{shop.orders.topic}/partition=0/x")
    hearing.sent('{"Service": "Amazon S3", "Event": "s3:TestEvent"}')
    assert hearing.skip() == "no message reports a new object of a pipeline"
    hearing.skip()
    assert hearing.messages == 0


def test_a_broken_table_does_not_hold_up_the_others(shop: World, hearing: Hearing) -> None:
    key = landed(shop)
    shop.customer("ANNE")
    shop.land(shop.customers)
    shop.bucket.write(key, b"{}")
    hearing.told(key, object_names.manifest_key("shop", shop.customers.topic, 1))
    run_key = hearing.request().run_key
    assert run_key is not None
    assert run_key.startswith("apply:shop.sales.customers")
    assert "manifest 1 of topic shop.sales.orders is damaged" in hearing.skip()
    assert hearing.messages == 1


def test_messages_of_a_broken_table_do_not_fill_the_cursor(
    shop: World, hearing: Hearing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_sensor, "_MAX_WAITING_MESSAGES", 3)
    key = landed(shop)
    shop.bucket.write(key, b"{}")
    for _ in range(3):
        hearing.told(key, key)
        hearing.skip()
    shop.customer("ANNE")
    shop.land(shop.customers)
    hearing.told(object_names.manifest_key("shop", shop.customers.topic, 1))
    assert str(hearing.request().run_key).startswith("apply:shop.sales.customers")


@pytest.fixture
def adopting(shop: World) -> World:
    """The shop, landed by a sink connector."""
    spec = shop.flow.spec
    sink = type(spec.landing).model_validate({"sink": {"layout": "lenses"}})
    shop.flow = Flow(spec.model_copy(update={"landing": sink}), shop.flow.folder)
    return shop


def write(shop: World, first: int, last: int) -> str:
    """The connector writes an object of so many orders; its key."""
    topic = shop.orders.topic
    records = [(m.offset, m.value or b"") for m in shop.kafka.peek(topic, 0, first) if m.offset <= last]
    key = named(LENSES, topic, 0, records)
    shop.bucket.write(key, written(LENSES, topic, 0, records))
    return key


def test_a_sinks_object_launches_its_adoption(adopting: World, hearing: Hearing, clock: Clock) -> None:
    hearing.sensor = sensor(adopting.flow, component.build(adopting.flow))
    land = Daemon.of("shop_orders_land", adopting, hearing.instance, clock)
    orders(adopting, 5)
    assert land.skip() == "the sink connector has not written the topic's newest records yet"
    hearing.told(write(adopting, 0, 2))
    request, expected = hearing.request(), land.request()
    assert (request.run_key, request.tags) == (expected.run_key, expected.tags)
    assert request.asset_selection == (adopting.orders.key("raw"), adopting.orders.key("lake"))


def test_the_bucket_is_listed_seldom_beside_a_queue(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    local = dict(profile.resources())
    assert sensor_intervals.of_profile() == SensorIntervals(listing_seconds=5, connector_seconds=5, refreshes=False)
    monkeypatch.setattr(profile, "resources", lambda: {**local, "queue": None})
    assert sensor_intervals.of_profile().listing_seconds == 60
    built = {sensor.name: sensor for sensor in component.build(shop.flow, sensor_intervals.of_profile()).sensors or ()}
    assert built["shop_orders_apply"].minimum_interval_seconds == 60
    assert built["shop_orders_land"].minimum_interval_seconds == 5  # it asks Kafka
