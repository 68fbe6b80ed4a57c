"""S3Store's listings."""

from __future__ import annotations

from datetime import UTC, datetime

import boto3
from botocore.stub import Stubber

from cdc_lake.contract.objects.store import ObjectInfo, S3Store

WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_put_in_progress_is_not_listed() -> None:
    """s3proxy answers so while it writes the object's file."""
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret")
    unfinished = {"Key": "lake/1.commit-64afafe4-3b22-4ee7-93a8-8b1b4c6d9d0e", "Size": 0}
    answer = {"Contents": [{"Key": "lake/1.commit", "Size": 7, "ETag": '"e"', "LastModified": WRITTEN}, unfinished]}
    with Stubber(client) as stubbed:
        stubbed.add_response("list_objects_v2", answer)
        assert list(S3Store("bucket", client).scan("lake/")) == [ObjectInfo("lake/1.commit", 7, "e", WRITTEN)]
