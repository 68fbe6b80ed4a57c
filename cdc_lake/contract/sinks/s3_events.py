"""Parse messages about new objects: S3 event notifications, direct or delivered through SNS or EventBridge.

    {"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": …}, "object": {"key": <URL-encoded>}}}]}
    {"Type": "Notification", "Message": "<the above as text>"}
    {"source": "aws.s3", "detail-type": "Object Created", "detail": {"bucket": {"name": …}, "object": {"key": …}}}
    {"Service": "Amazon S3", "Event": "s3:TestEvent", …}      sent at setup, without an object

Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html,
https://docs.aws.amazon.com/sns/latest/dg/sns-sqs-as-subscriber.html and
https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import unquote_plus

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdc_lake.contract.errors import UnreadableEventError

_CREATED = "ObjectCreated:"


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Bucket(_Part):
    name: str


class _Object(_Part):
    key: str


class _Location(_Part):
    bucket: _Bucket
    object: _Object


class _Record(_Part):
    event: str = Field(alias="eventName")
    s3: _Location


class _Notification(_Part):
    records: list[_Record] = Field(alias="Records")


class _FromEventBridge(_Part):
    source: str
    kind: str = Field(alias="detail-type")
    detail: _Location


def created_objects(body: str) -> Sequence[tuple[str, str]]:
    """Return bucket and key of each created object; an empty list for other events of S3.

    Raises UnreadableEventError for a message that S3 does not send.
    """
    try:
        message = json.loads(body)
    except ValueError as error:
        raise UnreadableEventError(f"it is not JSON ({error})") from error
    if not isinstance(message, dict):
        raise UnreadableEventError("it is not a JSON object")
    if message.get("Type") == "Notification" and isinstance(message.get("Message"), str):
        return created_objects(message["Message"])
    if message.get("Event") == "s3:TestEvent":
        return []
    try:
        if "detail-type" in message:
            event = _FromEventBridge.model_validate(message)
            if event.source != "aws.s3":
                raise UnreadableEventError(f"it is an event of {event.source}, not of aws.s3")
            return [(event.detail.bucket.name, event.detail.object.key)] if event.kind == "Object Created" else []
        records = _Notification.model_validate(message).records
    except ValidationError as error:
        fault = error.errors()[0]
        raise UnreadableEventError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error
    # Some senders write `s3:ObjectCreated:…`, the name that a notification's configuration has.
    return [
        (record.s3.bucket.name, unquote_plus(record.s3.object.key))
        for record in records
        if record.event.removeprefix("s3:").startswith(_CREATED)
    ]
