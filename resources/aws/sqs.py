"""An Amazon SQS queue as a Dagster resource: receive and delete messages, describe the dead-letter queue.

A received message is hidden for the queue's visibility timeout. If it is not deleted by then, SQS delivers it again,
and after `maxReceiveCount` deliveries moves it to the dead-letter queue of the redrive policy, if there is one.
Standard queues deliver at least once and in any order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

from resources.aws.aws_resource import AwsResource

_BATCH = 10  # messages in one request, SQS's maximum


@dataclass(frozen=True)
class Message:
    """A received message. `handle` is its receipt handle, `receipts` the number of its deliveries so far."""

    id: str
    handle: str
    body: str
    receipts: int


@dataclass(frozen=True)
class DeadLetterQueue:
    """A dead-letter queue. `after` is the maxReceiveCount, `messages` the approximate number of messages in it."""

    arn: str
    after: int
    messages: int


class Sqs(AwsResource):
    """One queue.

    Every method raises Unreachable, AccessRefused or AwsRequestFailed (`AWS.SimpleQueueService.NonExistentQueue`, …).

    Usage:

        queue = Sqs(region="eu-west-1", queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/raw")
        messages = queue.receive()
    """

    queue_url: str
    wait_seconds: int = Field(
        default=5,
        ge=0,
        le=20,
        description="How long a request waits for messages if the queue is empty (long polling).",
    )
    visibility_seconds: int | None = Field(
        default=None, ge=0, le=43_200, description="The visibility timeout of received messages; None: the queue's."
    )

    def receive(self, limit: int = 100) -> list[Message]:
        """Return available messages, at most `limit` + 9, each of them once. Waits only if the queue is empty."""
        found: dict[str, Message] = {}
        wait = self.wait_seconds
        while len(found) < limit:
            batch = self._receive(wait)
            found |= {message.id: message for message in batch}
            if len(batch) < _BATCH:
                break
            wait = 0
        return list(found.values())

    def delete(self, handles: Sequence[str]) -> list[str]:
        """Delete messages by receipt handle; return AWS's error for each message that was not deleted.

        SQS delivers those messages again, and also messages whose receipt handle has expired.
        """
        errors = []
        for batch in _batches(handles):
            entries = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(batch)]
            with self.translate_errors(f"delete {len(batch)} messages of {self.queue_url}"):
                response = self.client("sqs").delete_message_batch(QueueUrl=self.queue_url, Entries=entries)
            errors += [f"{fault['Code']}: {fault.get('Message', '')}" for fault in response.get("Failed", [])]
        return errors

    def dead_letters(self) -> DeadLetterQueue | None:
        """Return the queue's dead-letter queue, None if none is configured."""
        policy = self._attributes(self.queue_url, "RedrivePolicy").get("RedrivePolicy")
        if policy is None:
            return None
        redrive = json.loads(policy)
        arn = redrive["deadLetterTargetArn"]
        account, name = arn.split(":")[4:6]
        with self.translate_errors(f"look up the queue {arn}"):
            url = self.client("sqs").get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
        count = self._attributes(url, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"]
        return DeadLetterQueue(arn, int(redrive["maxReceiveCount"]), int(count))

    def _receive(self, wait: int) -> list[Message]:
        visibility = {} if self.visibility_seconds is None else {"VisibilityTimeout": self.visibility_seconds}
        with self.translate_errors(f"receive messages from {self.queue_url}"):
            response = self.client("sqs").receive_message(
                QueueUrl=self.queue_url,
                MaxNumberOfMessages=_BATCH,
                WaitTimeSeconds=wait,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
                **visibility,
            )
        return [
            Message(
                each["MessageId"],
                each["ReceiptHandle"],
                each["Body"],
                int(each.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
            )
            for each in response.get("Messages", [])
        ]

    def _attributes(self, url: str, name: str) -> dict[str, str]:
        with self.translate_errors(f"read {name} of {url}"):
            found: dict[str, str] = (
                self.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=[name]).get("Attributes", {})
            )
        return found


def _batches(handles: Sequence[str]) -> Iterator[Sequence[str]]:
    return (handles[start : start + _BATCH] for start in range(0, len(handles), _BATCH))
