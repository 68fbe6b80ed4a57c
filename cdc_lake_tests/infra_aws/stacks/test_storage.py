"""Buckets, their events and queues, and the image repository."""

from __future__ import annotations

import json

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.statements import text


def test_every_bucket_is_versioned_encrypted_private_and_has_a_lifecycle(environment: Synthesized) -> None:
    buckets = [r["Properties"] for _, kind, r in environment.resources() if kind == "AWS::S3::Bucket"]
    assert len(buckets) == 3
    for bucket in buckets:
        assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
        [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        assert len(bucket["PublicAccessBlockConfiguration"]) == 4
        rules = bucket["LifecycleConfiguration"]["Rules"]
        assert {rule["Status"] for rule in rules} == {"Enabled"}
        assert any("AbortIncompleteMultipartUpload" in rule for rule in rules)
        assert any("NoncurrentVersionExpiration" in rule for rule in rules)


def test_requests_without_tls_are_denied(environment: Synthesized) -> None:
    policies = environment.of("storage", "AWS::S3::BucketPolicy").values()
    denials = [
        statement
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]
    assert len(denials) == 3


def test_old_leases_expire_after_a_day_and_data_never(environment: Synthesized) -> None:
    [lake] = [b for name, b in environment.of("storage", "AWS::S3::Bucket").items() if name.startswith("Lake")]
    rules = {rule["Id"]: rule for rule in lake["LifecycleConfiguration"]["Rules"]}
    assert rules["old-leases"]["Prefix"] == "leases/"
    assert rules["old-leases"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert [rule for rule in rules.values() if "ExpirationInDays" in rule] == [], "raw objects must not expire"


def test_the_queue_receives_events_of_raw_objects_of_the_lake_bucket_only(environment: Synthesized) -> None:
    [lake] = [b for name, b in environment.of("storage", "AWS::S3::Bucket").items() if name.startswith("Lake")]
    [configuration] = lake["NotificationConfiguration"]["QueueConfigurations"]
    assert configuration["Event"] == "s3:ObjectCreated:*"
    assert configuration["Filter"]["S3Key"]["Rules"] == [{"Name": "prefix", "Value": "raw/"}]
    policies = environment.of("events", "AWS::SQS::QueuePolicy").values()
    allowed = [s for p in policies for s in p["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]
    assert len(allowed) == 1
    assert allowed[0]["Principal"] == {"Service": "s3.amazonaws.com"}
    source = text(allowed[0]["Condition"]["ArnEquals"]["aws:SourceArn"])
    assert source.endswith(f":s3:::{text(lake['BucketName'])}")


def test_unhandled_messages_go_to_the_dead_letter_queue(environment: Synthesized) -> None:
    queues = environment.of("events", "AWS::SQS::Queue")
    [main] = [queue for queue in queues.values() if "RedrivePolicy" in queue]
    assert main["RedrivePolicy"]["maxReceiveCount"] == 5
    [dead_letters] = [name for name, queue in queues.items() if "RedrivePolicy" not in queue]
    assert main["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": [dead_letters, "Arn"]}
    assert {queue["SqsManagedSseEnabled"] for queue in queues.values()} == {True}


def test_data_outlives_its_stack_in_production_only(dev: Synthesized, production: Synthesized) -> None:
    def policies(environment: Synthesized) -> set[str]:
        resources = environment.templates["storage"]["Resources"].values()
        return {r["DeletionPolicy"] for r in resources if r["Type"] in {"AWS::S3::Bucket", "AWS::ECR::Repository"}}

    assert (policies(dev), policies(production)) == ({"Delete"}, {"Retain"})


def test_image_tags_are_immutable(environment: Synthesized) -> None:
    repository = environment.one("storage", "AWS::ECR::Repository")
    assert repository["ImageTagMutability"] == "IMMUTABLE"
    assert "latest" not in json.dumps(environment.templates["dagster"])
