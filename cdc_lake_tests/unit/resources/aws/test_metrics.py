"""CloudWatchMetrics: requests checked against botocore's model, and metrics stored in moto's CloudWatch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from resources.aws.aws_resource import AwsRequestFailed
from resources.aws.metrics import NAMESPACE, UNITS, UNLANDED, WATERMARK_AGE, CloudWatchMetrics, Metrics, NoMetrics
from resources.errors import AccessRefused

KEYS = {"region": "us-east-1", "access_key": "key", "secret_key": "secret"}


def metrics(**settings: Any) -> CloudWatchMetrics:  # noqa: ANN401 - a field's value
    """Return the resource of the environment `small`."""
    return CloudWatchMetrics(**{**KEYS, "environment": "small", "attempts": 1, **settings})


def test_units_are_valid_in_cloudwatch() -> None:
    model = boto3.client("cloudwatch", region_name="us-east-1").meta.service_model
    assert set(UNITS.values()) <= set(model.shape_for("StandardUnit").enum)


def test_metrics_are_stored_by_environment_and_pipeline() -> None:
    with mock_aws():
        resource: Metrics = metrics()
        resource.put("shop", {WATERMARK_AGE: 12.5, UNLANDED: 3})
        now = datetime.now(UTC)
        client = boto3.client("cloudwatch", region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s")
        dimensions = [{"Name": "Environment", "Value": "small"}, {"Name": "Pipeline", "Value": "shop"}]
        for name, value in ((WATERMARK_AGE, 12.5), (UNLANDED, 3.0)):
            [found] = client.get_metric_statistics(
                Namespace=NAMESPACE,
                MetricName=name,
                Dimensions=dimensions,
                StartTime=now - timedelta(minutes=5),
                EndTime=now + timedelta(minutes=5),
                Period=600,
                Statistics=["Maximum"],
            )["Datapoints"]
            assert (found["Maximum"], found["Unit"]) == (value, UNITS[name])


def test_all_metrics_are_sent_in_one_request() -> None:
    resource = metrics()
    dimensions = [{"Name": "Environment", "Value": "small"}, {"Name": "Pipeline", "Value": "shop"}]
    data = [
        {"MetricName": WATERMARK_AGE, "Dimensions": dimensions, "Value": 1.0, "Unit": "Seconds"},
        {"MetricName": UNLANDED, "Dimensions": dimensions, "Value": 2.0, "Unit": "Count"},
    ]
    with Stubber(resource.client("cloudwatch")) as stubbed:
        stubbed.add_response("put_metric_data", {}, {"Namespace": "cdc-lake", "MetricData": data})
        resource.put("shop", {WATERMARK_AGE: 1.0, UNLANDED: 2.0})
        stubbed.assert_no_pending_responses()


def test_without_metrics_no_request_is_sent() -> None:
    resource = metrics()
    with Stubber(resource.client("cloudwatch")):  # rejects every call
        resource.put("shop", {})


@pytest.mark.parametrize(
    ("code", "error"),
    [("AccessDenied", AccessRefused), ("Throttling", AwsRequestFailed), ("ExpiredToken", AccessRefused)],
)
def test_a_refused_put_names_metric_and_target(code: str, error: type[Exception]) -> None:
    resource = metrics()
    with Stubber(resource.client("cloudwatch")) as stubbed:
        stubbed.add_client_error("put_metric_data", code, "not for you")
        with pytest.raises(error, match=f"Cannot publish UnlandedOffsets of small/shop in cdc-lake:.*{code}"):
            resource.put("shop", {UNLANDED: 1})


def test_an_unknown_metric_is_rejected() -> None:
    with pytest.raises(KeyError, match="Freshness"):
        metrics().put("shop", {"Freshness": 1})


def test_an_empty_environment_is_rejected() -> None:
    with pytest.raises(ValueError, match="environment"):
        metrics(environment="")


def test_no_metrics_accepts_and_ignores_metrics() -> None:
    no_metrics: Metrics = NoMetrics()
    no_metrics.put("shop", {UNLANDED: 1})
