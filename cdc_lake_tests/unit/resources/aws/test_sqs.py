"""The queue resource against moto's SQS, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import boto3
import pytest
from botocore.client import BaseClient
from moto import mock_aws

from resources.aws.client import AwsRequestFailed
from resources.aws.sqs import Sqs
from resources.errors import Unreachable


@pytest.fixture
def client() -> Iterator[BaseClient]:
    """SQS."""
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret")


def made(client: BaseClient, name: str, **attributes: str) -> str:
    """A queue's URL."""
    url: str = client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def redriven(client: BaseClient, after: int = 2) -> tuple[str, str]:
    """The URLs of a queue and of its dead-letter queue."""
    unhandled = made(client, "unhandled")
    arn = client.get_queue_attributes(QueueUrl=unhandled, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": after})
    return made(client, "events", RedrivePolicy=policy), unhandled


def queue(url: str, **settings: int) -> Sqs:
    """The resource, which waits for nothing."""
    return Sqs(queue_url=url, access_key="key", secret_key="secret", wait_seconds=0, attempts=1, **settings)


def test_what_is_received_is_hidden_until_it_is_deleted(client: BaseClient) -> None:
    one = queue(made(client, "events"))
    for number in range(25):
        client.send_message(QueueUrl=one.queue_url, MessageBody=f"message {number}")
    messages = one.receive()
    assert sorted(each.body for each in messages) == sorted(f"message {number}" for number in range(25))
    assert {each.receipts for each in messages} == {1}
    assert one.receive() == []
    assert one.delete([each.handle for each in messages]) == []
    assert one.delete([]) == []
    counted = client.get_queue_attributes(QueueUrl=one.queue_url, AttributeNames=["All"])["Attributes"]
    assert counted["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_no_more_than_the_limit_asks_for(client: BaseClient) -> None:
    one = queue(made(client, "events"))
    for number in range(25):
        client.send_message(QueueUrl=one.queue_url, MessageBody=str(number))
    assert len(one.receive(limit=20)) == 20


def test_what_is_not_deleted_comes_again_and_then_goes_to_the_dead_letters(client: BaseClient) -> None:
    url, unhandled = redriven(client)
    one = queue(url, visibility_seconds=0)
    client.send_message(QueueUrl=url, MessageBody="odd")
    [first], [second] = one.receive(), one.receive()
    assert (first.id, second.receipts) == (second.id, 2)
    assert one.receive() == []
    found = one.dead_letters()
    assert found is not None
    assert (found.arn.rpartition(":")[2], found.after, found.messages) == ("unhandled", 2, 1)
    assert queue(unhandled).receive()[0].body == "odd"


def test_a_queue_without_dead_letters(client: BaseClient) -> None:
    assert queue(made(client, "events")).dead_letters() is None


def test_a_handle_that_is_none_is_told(client: BaseClient) -> None:
    refused = queue(made(client, "events")).delete(["no handle"])
    assert len(refused) == 1
    assert "ReceiptHandleIsInvalid" in refused[0]


def test_no_such_queue(client: BaseClient) -> None:  # noqa: ARG001 - SQS has to be there
    url = "https://sqs.us-east-1.amazonaws.com/123456789012/missing"
    with pytest.raises(AwsRequestFailed, match=f"Receiving from {url} failed"):
        queue(url).receive()


def test_an_unreachable_endpoint_is_reported() -> None:
    nowhere = "http://127.0.0.1:9"
    one = queue(f"{nowhere}/123456789012/events", endpoint_url=nowhere, hint="Start it.")
    with pytest.raises(Unreachable, match=r"127.0.0.1:9 does not answer.*Start it\."):
        one.receive()
