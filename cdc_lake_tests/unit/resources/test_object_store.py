"""ObjectStore, an S3Resource of dagster-aws: its client, its settings for Spark, and no secret in its repr."""

from typing import Any

import dagster as dg
import pytest
from dagster_aws.s3 import S3Resource

from cdc_lake_tests.fakes.aws.s3 import served_s3
from resources.object_store import ObjectStore


def test_assets_get_the_resource_with_a_working_client() -> None:
    found = []

    @dg.asset
    def report(context: dg.AssetExecutionContext, store: ObjectStore) -> None:
        assert isinstance(store, S3Resource)
        assert context.resources.store is store, "S3Resource itself would attach its client here"
        store.get_client().put_object(Bucket=store.bucket, Key="reports/today", Body=b"fine")
        found.append(store)

    with served_s3() as s3:
        store = ObjectStore(
            bucket="shop", endpoint_url=s3.url, aws_access_key_id="key", aws_secret_access_key="secret", max_attempts=1
        )
        assert dg.materialize([report], resources={"store": store}).success
        assert s3.objects == {"shop/reports/today": b"fine"}
    assert found


def test_spark_gets_endpoint_and_keys() -> None:
    store = ObjectStore(
        bucket="shop", endpoint_url="http://127.0.0.1:9", aws_access_key_id="key", aws_secret_access_key="hidden"
    )
    assert store.hadoop_secrets() == {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "hidden"}
    assert store.spark_options()["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert "hidden" not in repr(store)
    on_aws = ObjectStore(bucket="shop")
    assert (on_aws.hadoop_secrets(), on_aws.spark_options()) == ({}, {})


@pytest.mark.parametrize(
    "field", [{"profile_name": "me"}, {"aws_session_token": "t"}, {"use_unsigned_session": True}, {"verify": False}]
)
def test_credentials_that_spark_would_not_use_are_rejected(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"Cannot set {next(iter(field))} on the object store"):
        ObjectStore(bucket="shop", **field)
