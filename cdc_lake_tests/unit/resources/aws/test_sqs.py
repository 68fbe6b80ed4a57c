"""The Sqs resource against moto's SQS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from resources.aws.aws_resource import AwsRequestFailed
from resources.aws.sqs import Sqs
from resources.errors import Unreachable

Client = Any
"""A boto3 client of SQS, for which no stubs are installed."""


@pytest.fixture
def client() -> Iterator[Client]:
    """A client of moto's SQS."""
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret")


def create_queue(client: Client, name: str, **attributes: str) -> str:
    """Create a queue; return its URL."""
    url: str = client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def create_queue_with_dead_letters(client: Client, after: int = 2) -> tuple[str, str]:
    """Create a queue with a dead-letter queue; return the URLs of both."""
    unhandled = create_queue(client, "unhandled")
    arn = client.get_queue_attributes(QueueUrl=unhandled, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": after})
    return create_queue(client, "events", RedrivePolicy=policy), unhandled


def queue(url: str, **settings: Any) -> Sqs:  # noqa: ANN401 - fields of several types
    """Return the resource without waiting times."""
    return Sqs(queue_url=url, access_key="key", secret_key="secret", wait_seconds=0, attempts=1, **settings)


def test_received_messages_are_invisible_until_they_are_deleted(client: Client) -> None:
    resource = queue(create_queue(client, "events"))
    for number in range(25):
        client.send_message(QueueUrl=resource.queue_url, MessageBody=f"message {number}")
    messages = resource.receive()
    assert sorted(each.body for each in messages) == sorted(f"message {number}" for number in range(25))
    assert {each.receipts for each in messages} == {1}
    assert resource.receive() == []
    assert resource.delete([each.handle for each in messages]) == []
    assert resource.delete([]) == []
    counted = client.get_queue_attributes(QueueUrl=resource.queue_url, AttributeNames=["All"])["Attributes"]
    assert counted["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_no_more_messages_than_the_limit_are_received(client: Client) -> None:
    resource = queue(create_queue(client, "events"))
    for number in range(25):
        client.send_message(QueueUrl=resource.queue_url, MessageBody=str(number))
    assert len(resource.receive(limit=20)) == 20


def test_undeleted_messages_are_redelivered_and_then_moved_to_the_dead_letter_queue(client: Client) -> None:
    url, unhandled = create_queue_with_dead_letters(client)
    resource = queue(url, visibility_seconds=0)
    client.send_message(QueueUrl=url, MessageBody="odd")
    [first], [second] = resource.receive(), resource.receive()
    assert (first.id, second.receipts) == (second.id, 2)
    assert resource.receive() == []
    found = resource.dead_letters()
    assert found is not None
    assert (found.arn.rpartition(":")[2], found.after, found.messages) == ("unhandled", 2, 1)
    assert queue(unhandled).receive()[0].body == "odd"


def test_a_queue_without_dead_letter_queue(client: Client) -> None:
    assert queue(create_queue(client, "events")).dead_letters() is None


def test_an_invalid_handle_is_reported(client: Client) -> None:
    refused = queue(create_queue(client, "events")).delete(["no handle"])
    assert len(refused) == 1
    assert "ReceiptHandleIsInvalid" in refused[0]


def test_a_missing_queue_is_reported(client: Client) -> None:  # noqa: ARG001 - starts moto
    url = "https://sqs.us-east-1.amazonaws.com/123456789012/missing"
    with pytest.raises(AwsRequestFailed, match=f"Cannot receive messages from {url}:"):
        queue(url).receive()


def test_an_unreachable_endpoint_is_reported() -> None:
    nowhere = "http://127.0.0.1:9"
    resource = queue(f"{nowhere}/123456789012/events", endpoint_url=nowhere, hint="Start it.")
    with pytest.raises(Unreachable, match=r"127.0.0.1:9 does not answer.*Start it\."):
        resource.receive()
