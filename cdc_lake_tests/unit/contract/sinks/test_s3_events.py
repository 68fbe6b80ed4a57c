"""S3 event messages, direct and wrapped by SNS or EventBridge, and rejected messages."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cdc_lake.contract.errors import UnreadableEventError
from cdc_lake.contract.sinks.s3_events import created_objects

KEY = "raw/shop/_sink/ann+e/t(0_1).json"


def record(name: str = "ObjectCreated:Put", key: str = "raw/shop/_sink/ann%2Be/t%280_1%29.json") -> dict[str, Any]:
    """Return one record: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html."""
    return {
        "eventVersion": "2.2",
        "eventSource": "aws:s3",
        "awsRegion": "us-west-2",
        "eventTime": "1970-01-01T00:00:00.000Z",
        "eventName": name,
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": {"name": "lake", "arn": "arn:aws:s3:::lake"},
            "object": {"key": key, "size": 1024, "eTag": "d41d8", "sequencer": "0055AED6DCD90281E5"},
        },
    }


def test_s3_notifications_are_parsed() -> None:
    body = json.dumps({"Records": [record(), record("ObjectCreated:CompleteMultipartUpload", "a+b")]})
    assert created_objects(body) == [("lake", KEY), ("lake", "a b")]


def test_other_s3_events_contain_no_created_objects() -> None:
    assert created_objects(json.dumps({"Records": [record("ObjectRemoved:Delete")]})) == []
    test = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake", "RequestId": "1", "HostId": "2"}
    assert created_objects(json.dumps(test)) == []


def test_notifications_wrapped_by_sns_are_parsed() -> None:
    wrapped = {"Type": "Notification", "TopicArn": "arn:…", "Message": json.dumps({"Records": [record()]})}
    assert created_objects(json.dumps(wrapped)) == [("lake", KEY)]


def test_eventbridge_events_are_parsed() -> None:
    event = {
        "version": "0",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "detail": {"bucket": {"name": "lake"}, "object": {"key": KEY, "size": 5}, "reason": "PutObject"},
    }
    assert created_objects(json.dumps(event)) == [("lake", KEY)]
    assert created_objects(json.dumps({**event, "detail-type": "Object Deleted"})) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "Records: Field required"),
        ('{"Records": [{}]}', r"Records.0.eventName: Field required"),
        (json.dumps({"Records": [{**record(), "s3": {"bucket": {"name": "lake"}}}]}), "Records.0.s3.object"),
        ('{"Type": "Notification", "Message": "hello"}', "not JSON"),
        (
            json.dumps({"source": "aws.ec2", "detail-type": "x", "detail": record()["s3"]}),
            "an event of aws.ec2, not of aws.s3",
        ),
        ('{"detail-type": "Object Created", "source": "aws.s3", "detail": {}}', "detail.bucket: Field required"),
    ],
)
def test_other_messages_are_rejected(body: str, message: str) -> None:
    with pytest.raises(UnreadableEventError, match=message):
        created_objects(body)


def test_notifications_sent_by_moto_are_parsed() -> None:
    with mock_aws():
        s3, sqs = boto3.client("s3", region_name="us-east-1"), boto3.client("sqs", region_name="us-east-1")
        url = sqs.create_queue(QueueName="events")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        s3.create_bucket(Bucket="lake")
        s3.put_bucket_notification_configuration(
            Bucket="lake",
            NotificationConfiguration={
                "QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}],
            },
        )
        s3.put_object(Bucket="lake", Key="raw/shop/topic/_manifests/1.json", Body=b"")
        bodies = [each["Body"] for each in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]]
    assert [created for body in bodies for created in created_objects(body)] == [
        ("lake", "raw/shop/topic/_manifests/1.json")
    ]
