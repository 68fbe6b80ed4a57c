"""The queue sensor launches the runs of the listing sensors sooner; messages cannot change which runs."""

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
from moto import mock_aws

from cdc_lake import profile
from cdc_lake.contract.objects import object_names
from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline import component
from cdc_lake.pipeline.automation import run_requests
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.sensors import queue_sensor, sensor_intervals
from cdc_lake.pipeline.automation.sensors.queue_cursor import QueueCursor
from cdc_lake.pipeline.automation.sensors.sensor_intervals import SensorIntervals
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake_tests.fakes.dagster import fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop, new_shop
from cdc_lake_tests.helpers.sink_objects import LENSES, object_key, written
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders
from resources.aws.sqs import Sqs

Client = Any
"""A boto3 client of SQS, for which no stubs are installed."""


def sensor(pipeline: Pipeline, built: dg.Definitions) -> dg.SensorDefinition:
    """Return the queue sensor of one pipeline."""
    definitions = {job.name: job for job in built.jobs or ()}
    return queue_sensor.build([(pipeline, Jobs(pipeline, pipeline_checks.build(pipeline)))], definitions)


@dataclass
class QueueDaemon(Daemon):
    """Evaluates the queue sensor on an SQS queue of moto."""

    client: Any = None
    queue: Sqs = field(default_factory=lambda: Sqs(queue_url=""))
    repository: dg.RepositoryDefinition | None = None

    def notify(self, *keys: str, bucket: str = "shop") -> None:
        """Send one S3 event per object."""
        for key in keys:
            place = {"bucket": {"name": bucket}, "object": {"key": key.replace("+", "%2B")}}
            self.send(json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": place}]}))

    def send(self, body: str) -> None:
        """Send a message."""
        self.client.send_message(QueueUrl=self.queue.queue_url, MessageBody=body)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        """Evaluate the sensor once, with the code location's asset graph."""
        fakes = fake_resources(kafka=self.shop.kafka, store=self.shop.store, queue=self.queue)
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
        """Return the number of messages in the queue, visible or not."""
        attributes = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        counted = self.client.get_queue_attributes(QueueUrl=self.queue.queue_url, AttributeNames=attributes)[
            "Attributes"
        ]
        return sum(int(counted[name]) for name in attributes)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> dg.RepositoryDefinition:
    """The code location with the sensor; a tick needs its asset graph."""
    shop = new_shop(tmp_path_factory.mktemp("shop"), 0.0)
    built = component.build(shop.pipeline)
    own = dg.Definitions(
        sensors=[sensor(shop.pipeline, built)], resources=fake_resources(**shop.resources, queue=Sqs(queue_url=""))
    )
    found: dg.RepositoryDefinition = dg.Definitions.merge(built, own).get_repository_def()
    return found


@pytest.fixture(scope="module")
def sqs() -> Iterator[Any]:
    """An SQS client. Module scope, because creating a client takes longer than most tests here."""
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret")


@pytest.fixture(scope="module")
def any_queue(sqs: Client) -> Sqs:
    """The SQS resource with an existing client."""
    queue = Sqs(
        queue_url=sqs.create_queue(QueueName="any")["QueueUrl"],
        access_key="key",
        secret_key="secret",
        wait_seconds=0,
        attempts=1,
    )
    queue.receive()
    return queue


@pytest.fixture
def queue_daemon(
    shop: Shop,
    instance: dg.DagsterInstance,
    clock: Clock,
    repository: dg.RepositoryDefinition,
    sqs: Client,
    any_queue: Sqs,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[QueueDaemon]:
    """The queue sensor with a queue and its dead-letter queue."""
    monkeypatch.setattr(queue_sensor, "time", SimpleNamespace(time=clock.time))
    dead = sqs.create_queue(QueueName="unhandled")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
    url = sqs.create_queue(QueueName="events", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    queue = any_queue.model_copy(update={"queue_url": url})
    yield QueueDaemon(
        shop,
        sensor(shop.pipeline, component.build(shop.pipeline)),
        instance,
        clock,
        client=sqs,
        queue=queue,
        repository=repository,
    )
    for each in (url, dead):
        sqs.delete_queue(QueueUrl=each)


def landed(shop: Shop, first: int = 1) -> str:
    """Land a new order; return the key of its manifest."""
    orders(shop, 1, first=first)
    shop.land(shop.orders)
    return object_names.manifest_key("shop", shop.orders.topic, first)


def test_a_manifest_launches_the_same_run_as_the_listing_sensor(
    shop: Shop, queue_daemon: QueueDaemon, apply: Daemon
) -> None:
    assert queue_daemon.skip() == "no message reports a new object of a pipeline"
    queue_daemon.notify(landed(shop))
    request = queue_daemon.request()
    expected = apply.request()
    assert (request.run_key, request.tags) == (expected.run_key, expected.tags)
    assert request.asset_selection is not None
    assert (request.job_name, request.asset_selection) == (expected.job_name, expected.asset_selection)
    assert request.asset_check_keys == expected.asset_check_keys


def test_messages_are_not_deleted_if_the_tick_was_not_stored(shop: Shop, queue_daemon: QueueDaemon) -> None:
    queue_daemon.notify(landed(shop))
    cursor = queue_daemon.cursor
    queue_daemon.request()
    assert queue_daemon.messages == 1
    # The daemon ended before it stored the tick: the message is invisible for a while, and listing finds the manifest.
    queue_daemon.cursor = cursor
    queue_daemon.skip()
    assert queue_daemon.messages == 1


def test_messages_are_deleted_by_the_next_tick(shop: Shop, queue_daemon: QueueDaemon) -> None:
    queue_daemon.notify(landed(shop))
    queue_daemon.request()
    queue_daemon.skip()
    assert queue_daemon.messages == 0


def test_repeated_and_late_messages_launch_no_other_runs(shop: Shop, queue_daemon: QueueDaemon, apply: Daemon) -> None:
    keys = [landed(shop, number) for number in (1, 2, 3)]
    notify = keys * 3
    random.Random(1).shuffle(notify)
    queue_daemon.notify(*notify)
    assert queue_daemon.request().run_key == apply.request().run_key
    queue_daemon.skip()
    assert queue_daemon.messages == 0
    shop.apply(shop.orders)
    queue_daemon.notify(*notify)
    assert "everything that is landed is applied" in queue_daemon.skip()
    queue_daemon.skip()
    assert queue_daemon.messages == 0


def test_no_more_messages_are_received_than_the_cursor_may_hold(
    shop: Shop, queue_daemon: QueueDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_sensor, "_MAX_WAITING_MESSAGES", 1)
    key = landed(shop)
    shop.bucket.write(key, b"{}")  # messages of a broken table are kept
    queue_daemon.notify(key)
    queue_daemon.skip()
    queue_daemon.notify(key, key)
    queue_daemon.skip()
    attributes = ["ApproximateNumberOfMessages"]
    waiting = queue_daemon.client.get_queue_attributes(
        QueueUrl=queue_daemon.queue.queue_url, AttributeNames=attributes
    )["Attributes"]
    assert waiting == {"ApproximateNumberOfMessages": "2"}


def test_the_listing_sensor_finds_objects_of_lost_messages(
    shop: Shop, queue_daemon: QueueDaemon, apply: Daemon
) -> None:
    landed(shop)
    assert queue_daemon.skip() == "no message reports a new object of a pipeline"
    assert apply.request().run_key == "apply:shop.sales.orders:id-1:manifests-1-1:0"


def test_a_run_of_the_listing_sensor_blocks_the_queue_sensor(
    shop: Shop, queue_daemon: QueueDaemon, apply: Daemon
) -> None:
    key = landed(shop)
    run = apply.run()
    queue_daemon.notify(key)
    assert f"run {run.run_id} of shop_apply is active" in queue_daemon.skip()
    queue_daemon.skip()
    assert queue_daemon.messages == 0, "a long run must not move the message to the dead-letter queue"
    queue_daemon.instance.report_run_canceling(run)
    queue_daemon.instance.report_run_canceled(run)
    queue_daemon.clock.advance(run_requests.BACKOFF_SECONDS[0] + 1)
    queue_daemon.request()
    assert queue_daemon.skip() == "no message reports a new object of a pipeline"


@pytest.mark.parametrize("body", ["hello", "{}", '{"Records": 1}'])
def test_unreadable_messages_go_to_the_dead_letter_queue(
    queue_daemon: QueueDaemon, clock: Clock, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    queue_daemon.queue = queue_daemon.queue.model_copy(update={"visibility_seconds": 0})
    queue_daemon.send(body)
    for receipt in (1, 2, 3):
        queue_daemon.skip()
        stderr = capsys.readouterr().err
        assert "as an S3 event: " in stderr
        assert f"(receive count: {receipt})" in stderr
    queue_daemon.skip()
    assert queue_daemon.messages == 0
    clock.advance(301)
    queue_daemon.skip()
    assert "arn:aws:sqs:us-east-1:123456789012:unhandled is not empty (messages: 1)" in capsys.readouterr().err


def test_messages_of_other_objects_are_deleted(shop: Shop, queue_daemon: QueueDaemon) -> None:
    item = landed(shop)
    queue_daemon.notify(item, bucket="another")
    queue_daemon.notify(
        "raw/shop/_schemas/x", "raw/other/t/_manifests/1.json", f"raw/shop/{shop.orders.topic}/partition=0/x"
    )
    queue_daemon.send('{"Service": "Amazon S3", "Event": "s3:TestEvent"}')
    assert queue_daemon.skip() == "no message reports a new object of a pipeline"
    queue_daemon.skip()
    assert queue_daemon.messages == 0


def test_a_broken_table_does_not_block_the_others(shop: Shop, queue_daemon: QueueDaemon) -> None:
    key = landed(shop)
    shop.customer("ANNE")
    shop.land(shop.customers)
    shop.bucket.write(key, b"{}")
    queue_daemon.notify(key, object_names.manifest_key("shop", shop.customers.topic, 1))
    run_key = queue_daemon.request().run_key
    assert run_key is not None
    assert run_key.startswith("apply:shop.sales.customers")
    assert "Cannot read manifest 1 of topic shop.sales.orders: " in queue_daemon.skip()
    assert queue_daemon.messages == 1


def test_messages_of_a_broken_table_do_not_fill_the_cursor(
    shop: Shop, queue_daemon: QueueDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_sensor, "_MAX_WAITING_MESSAGES", 3)
    key = landed(shop)
    shop.bucket.write(key, b"{}")
    for _ in range(3):
        queue_daemon.notify(key, key)
        queue_daemon.skip()
    shop.customer("ANNE")
    shop.land(shop.customers)
    queue_daemon.notify(object_names.manifest_key("shop", shop.customers.topic, 1))
    assert str(queue_daemon.request().run_key).startswith("apply:shop.sales.customers")


@pytest.fixture
def adopting(shop: Shop) -> Shop:
    """The shop with a sink connector."""
    spec = shop.pipeline.spec
    sink = type(spec.landing).model_validate({"sink": {"layout": "lenses"}})
    shop.pipeline = Pipeline(spec.model_copy(update={"landing": sink}), shop.pipeline.folder)
    return shop


def write(shop: Shop, first: int, last: int) -> str:
    """Write the sink connector's object of these offsets; return its key."""
    topic = shop.orders.topic
    records = [(m.offset, m.value or b"") for m in shop.kafka.peek(topic, 0, first) if m.offset <= last]
    key = object_key(LENSES, topic, 0, records)
    shop.bucket.write(key, written(LENSES, topic, 0, records))
    return key


def test_an_object_of_a_sink_connector_launches_its_adoption(
    adopting: Shop, queue_daemon: QueueDaemon, clock: Clock
) -> None:
    queue_daemon.sensor = sensor(adopting.pipeline, component.build(adopting.pipeline))
    land = Daemon.for_sensor("shop_land", adopting, queue_daemon.instance, clock)
    orders(adopting, 5)
    assert land.skip() == "the sink connector has not written the topic's newest records yet"
    queue_daemon.notify(write(adopting, 0, 2))
    request, expected = queue_daemon.request(), land.request()
    assert (request.run_key, request.tags) == (expected.run_key, expected.tags)
    assert request.asset_selection == (adopting.orders.key("raw"), adopting.orders.key("lake"))


def test_the_bucket_is_listed_every_minute_if_there_is_a_queue(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    local = dict(profile.resources())
    assert sensor_intervals.for_profile() == SensorIntervals(listing_seconds=5, connector_seconds=5)
    monkeypatch.setattr(profile, "resources", lambda: {**local, "queue": None})
    assert sensor_intervals.for_profile().listing_seconds == 60
    built = {
        sensor.name: sensor for sensor in component.build(shop.pipeline, sensor_intervals.for_profile()).sensors or ()
    }
    assert built["shop_apply"].minimum_interval_seconds == 60
    assert built["shop_land"].minimum_interval_seconds == 5  # it reads Kafka, not the bucket


def test_a_cursor_that_an_earlier_version_stored_is_read() -> None:
    target = ("shop", "orders", "land")
    stored = {"heard": {"1": {"handle": "a", "targets": [target]}}, "waiting": [target], "done": ["b"]}
    found = QueueCursor.model_validate_json(json.dumps(stored))
    assert (found.waiting_messages["1"].handle, found.waiting_targets, found.done) == ("a", [target], ["b"])
    assert QueueCursor.model_validate_json(found.model_dump_json()) == found
