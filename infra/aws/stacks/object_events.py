"""The queue of events of new raw objects, and its dead-letter queue."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.aws.sizes.sizes import Size
from infra.aws.stacks.shared.base_stack import LakeStack

ATTEMPTS = 5
KEPT = Duration.days(14)


def bucket_name(size: Size, kind: str) -> str:
    """Return a bucket's name, which contains account and region, since bucket names are globally unique.

    The name is computed, not read from the bucket, because that would be a circular reference: the queue's policy
    contains the bucket's name, and the bucket refers to the queue.
    """
    return f"{size.prefix}-{kind}-{Aws.ACCOUNT_ID}-{size.region}"


class EventsStack(LakeStack):
    """The queue of S3's events for `raw/`, and its dead-letter queue."""

    def __init__(self, scope: Construct, size: Size) -> None:
        super().__init__(scope, "events", size, "queue of new raw objects")
        self.unhandled = self._queue("Unhandled", f"{size.prefix}-raw-objects-unhandled", redrive=None)
        self.queue = self._queue(
            "RawObjects",
            f"{size.prefix}-raw-objects",
            redrive=sqs.DeadLetterQueue(max_receive_count=ATTEMPTS, queue=self.unhandled),
        )
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("s3.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[self.queue.queue_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnEquals": {"aws:SourceArn": f"arn:{Aws.PARTITION}:s3:::{bucket_name(size, 'lake')}"},
                },
            )
        )
        CfnOutput(self, "RawObjectsUrl", value=self.queue.queue_url, description="Queue of new raw objects")

    def _queue(self, id_: str, name: str, redrive: sqs.DeadLetterQueue | None) -> sqs.Queue:
        return sqs.Queue(
            self,
            id_,
            queue_name=name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=KEPT,
            # A run that processes a message's object takes minutes.
            visibility_timeout=Duration.minutes(15),
            dead_letter_queue=redrive,
        )
