"""ObjectStore gives a boto3 client to assets and S3A settings to Spark, and its repr contains no secret."""

from __future__ import annotations

import subprocess
import sys

import dagster as dg

from cdc_lake_tests.fakes.aws.s3 import served_s3
from resources.object_store import ObjectStore


def test_assets_get_the_resource_with_a_working_client() -> None:
    found = []

    @dg.asset
    def report(store: ObjectStore) -> None:
        store.client("s3").put_object(Bucket=store.bucket, Key="reports/today", Body=b"fine")
        found.append(store)

    with served_s3() as s3:
        store = ObjectStore(bucket="shop", endpoint_url=s3.url, access_key="key", secret_key="secret", attempts=1)
        assert dg.materialize([report], resources={"store": store}).success
        assert s3.objects == {"shop/reports/today": b"fine"}
    assert found


def test_spark_gets_endpoint_and_keys() -> None:
    store = ObjectStore(bucket="shop", endpoint_url="http://127.0.0.1:9", access_key="key", secret_key="hidden")
    assert store.hadoop_secrets() == {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "hidden"}
    assert store.spark_options()["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert "hidden" not in repr(store)
    on_aws = ObjectStore(bucket="shop")
    assert (on_aws.hadoop_secrets(), on_aws.spark_options()) == ({}, {})


def test_the_definitions_do_not_import_dagster_aws() -> None:
    """Its import takes half a second in each command and run: it imports Dagster's test utilities and SQLAlchemy."""
    code = "import sys, cdc_lake.definitions; sys.exit('dagster_aws' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
