"""Custom plugins of MSK Connect: each zip is uploaded once and registered once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_lake_tests.aws_api.kafkaconnect.in_memory import Served, served
from cdc_lake_tests.fakes.aws.s3 import MemoryS3, served_s3
from resources.errors import Unreachable
from resources.msk_connect.plugins import MskPlugins, PluginFailed


@pytest.fixture
def aws() -> Iterator[Served]:
    """A fake MSK Connect API."""
    with served() as found:
        yield found


@pytest.fixture
def s3() -> Iterator[MemoryS3]:
    """A fake S3."""
    with served_s3() as found:
        yield found


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A plugin archive."""
    path = tmp_path / "debezium-0123456789ab.zip"
    path.write_bytes(b"jars")
    return path


def plugins(aws: Served, s3: MemoryS3) -> MskPlugins:
    """Return the resource."""
    return MskPlugins(
        region=aws.region,
        endpoint_url=aws.url,
        s3_endpoint_url=s3.url,
        access_key="key",
        secret_key="secret",
        attempts=1,
        bucket="bucket",
        poll_seconds=0.01,
        change_seconds=5,
    )


def test_a_zip_is_uploaded_and_registered_once(aws: Served, s3: MemoryS3, archive: Path) -> None:
    arn = plugins(aws, s3).ensure(archive)
    assert s3.objects == {"bucket/plugins/debezium-0123456789ab.zip": b"jars"}
    found = aws.client().describe_custom_plugin(customPluginArn=arn)
    assert (found["name"], found["customPluginState"]) == ("debezium-0123456789ab", "ACTIVE")
    location = found["latestRevision"]["location"]["s3Location"]
    assert location == {"bucketArn": "arn:aws:s3:::bucket", "fileKey": "plugins/debezium-0123456789ab.zip"}
    assert plugins(aws, s3).ensure(archive) == arn
    assert len(s3.puts) == 1


@pytest.mark.parametrize(("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")])
def test_the_buckets_arn_has_the_regions_partition(s3: MemoryS3, archive: Path, region: str, partition: str) -> None:
    with served(region) as aws:
        arn = plugins(aws, s3).ensure(archive)
        location = aws.client().describe_custom_plugin(customPluginArn=arn)["latestRevision"]["location"]["s3Location"]
    assert location["bucketArn"] == f"arn:{partition}:s3:::bucket"


def test_different_content_becomes_a_different_plugin(aws: Served, s3: MemoryS3, archive: Path) -> None:
    other = archive.with_name("debezium-0123456789ab-2.zip")  # a name with the same beginning
    other.write_bytes(b"other jars")
    assert plugins(aws, s3).ensure(other) != plugins(aws, s3).ensure(archive)
    assert len(s3.puts) == 2


def test_an_uploaded_zip_is_not_uploaded_again(aws: Served, s3: MemoryS3, archive: Path) -> None:
    s3.objects["bucket/plugins/debezium-0123456789ab.zip"] = b"jars"
    plugins(aws, s3).ensure(archive)
    assert s3.puts == []


def test_a_failed_plugin_reports_the_cause_and_is_replaced(aws: Served, s3: MemoryS3, archive: Path) -> None:
    aws.api.plugins.faults["plugins/debezium-0123456789ab.zip"] = "it has no jar"
    with pytest.raises(PluginFailed, match=r"arn:aws:kafkaconnect:.*CREATE_FAILED: it has no jar.*upload it again"):
        plugins(aws, s3).ensure(archive)
    aws.api.plugins.faults.clear()
    arn = plugins(aws, s3).ensure(archive)
    assert aws.client().describe_custom_plugin(customPluginArn=arn)["customPluginState"] == "ACTIVE"
    assert len(aws.client().list_custom_plugins()["customPlugins"]) == 1


def test_an_unreachable_store_is_named(aws: Served, archive: Path) -> None:
    with pytest.raises(Unreachable, match=r"Cannot upload .*debezium-0123456789ab\.zip to s3://bucket/plugins/"):
        plugins(aws, MemoryS3(url="http://127.0.0.1:9")).ensure(archive)
    assert aws.client().list_custom_plugins()["customPlugins"] == []
