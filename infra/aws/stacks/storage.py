"""The buckets, and the repository of Dagster's image."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.aws.sizes.sizes import Size
from infra.aws.stacks.object_events import EventsStack, bucket_name
from infra.aws.stacks.shared.base_stack import LakeStack

_ABORTED = Duration.days(7)


class StorageStack(LakeStack):
    """Three buckets with different lifetimes: data (lake), reproducible files (work), code and jobs (artifacts)."""

    def __init__(self, scope: Construct, size: Size, events: EventsStack) -> None:
        super().__init__(scope, "storage", size, "buckets and image repository")
        old = Duration.days(size.buckets.expire_old_versions_days)
        self.lake = self._bucket(
            "lake",
            s3.LifecycleRule(id="old-versions", noncurrent_version_expiration=old, expired_object_delete_marker=True),
            # A lease is replaced every ten seconds while a writer works, so most old versions are leases.
            s3.LifecycleRule(id="old-leases", prefix="leases/", noncurrent_version_expiration=Duration.days(1)),
            s3.LifecycleRule(
                id="cold-raw",
                prefix="raw/",
                transitions=[
                    s3.Transition(
                        storage_class=s3.StorageClass.INFREQUENT_ACCESS,
                        transition_after=Duration.days(size.buckets.raw_cold_days),
                    )
                ],
            ),
        )
        self._notify(events)
        self.work = self._bucket(
            "work",
            s3.LifecycleRule(
                id="expire",
                expiration=Duration.days(size.buckets.expire_work_days),
                noncurrent_version_expiration=Duration.days(1),
            ),
        )
        self.artifacts = self._bucket(
            "artifacts",
            s3.LifecycleRule(id="old-versions", noncurrent_version_expiration=old),
            # Specs and reports of ended jobs.
            s3.LifecycleRule(id="runs", prefix="spark/runs/", expiration=Duration.days(size.buckets.expire_work_days)),
        )
        self.image = ecr.Repository(
            self,
            "Image",
            repository_name=size.prefix,
            image_scan_on_push=True,
            # A rollback to a tag requires that the tag never changes.
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            lifecycle_rules=[ecr.LifecycleRule(max_image_count=20)],
            removal_policy=self.removal,
        )
        for name, bucket in (("Lake", self.lake), ("Work", self.work), ("Artifacts", self.artifacts)):
            CfnOutput(self, f"{name}Bucket", value=bucket.bucket_name)
        CfnOutput(self, "ImageRepository", value=self.image.repository_uri)

    def _bucket(self, kind: str, *rules: s3.LifecycleRule) -> s3.Bucket:
        return s3.Bucket(
            self,
            kind.title(),
            bucket_name=bucket_name(self.size, kind),
            versioned=True,
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            removal_policy=self.removal,
            lifecycle_rules=[
                s3.LifecycleRule(id="aborted-uploads", abort_incomplete_multipart_upload_after=_ABORTED),
                *rules,
            ],
        )

    def _notify(self, events: EventsStack) -> None:
        """Send events of new objects below raw/ to the queue, including objects that a vendor's sink writes.

        The code sets a property of the bucket, because CDK's own method creates a Lambda function that may change the
        notifications of all buckets.
        """
        bucket = self.lake.node.default_child
        if not isinstance(bucket, s3.CfnBucket):
            raise TypeError(f"the lake's CDK resource is {type(bucket).__name__}, not AWS::S3::Bucket")
        bucket.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
            queue_configurations=[
                s3.CfnBucket.QueueConfigurationProperty(
                    event="s3:ObjectCreated:*",
                    queue=events.queue.queue_arn,
                    filter=s3.CfnBucket.NotificationFilterProperty(
                        s3_key=s3.CfnBucket.S3KeyFilterProperty(
                            rules=[s3.CfnBucket.FilterRuleProperty(name="prefix", value="raw/")]
                        )
                    ),
                )
            ]
        )
        # S3 checks its permission to send when this property is set, so the queue's policy has to exist before.
        self.add_stack_dependency(events)
