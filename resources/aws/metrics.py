"""CloudWatch metrics of pipelines, for alarms that also work while Dagster is down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import dagster as dg
from pydantic import Field

from resources.aws.aws_resource import AwsResource

NAMESPACE = "cdc-lake"
WATERMARK_AGE, UNLANDED = "WatermarkAgeSeconds", "UnlandedOffsets"
UNITS: Mapping[str, str] = {WATERMARK_AGE: "Seconds", UNLANDED: "Count"}
"""The unit of each metric. Every metric has the dimensions `Environment` and `Pipeline`."""


class Metrics(Protocol):
    """Publishes metrics."""

    def put(self, pipeline: str, values: Mapping[str, float]) -> None:
        """Publish the current values of a pipeline's metrics, by the metric names in UNITS."""


class NoMetrics(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Publishes nothing (implements Metrics): in the local profile, Dagster's asset checks are the alarms."""

    def put(self, pipeline: str, values: Mapping[str, float]) -> None:
        """Do nothing."""


class CloudWatchMetrics(AwsResource):
    """Custom metrics in CloudWatch (implements Metrics).

    Usage:

        metrics = CloudWatchMetrics(region="eu-west-1", environment="production")
        metrics.put("northwind", {WATERMARK_AGE: 4.2})
    """

    namespace: str = NAMESPACE
    environment: str = Field(min_length=1, description="The dimension that distinguishes deployments in one account.")

    def put(self, pipeline: str, values: Mapping[str, float]) -> None:
        """Publish the values, if there are any. Raises Unreachable, AccessRefused or AwsRequestFailed."""
        if not values:
            return
        dimensions = [{"Name": "Environment", "Value": self.environment}, {"Name": "Pipeline", "Value": pipeline}]
        data = [
            {"MetricName": name, "Dimensions": dimensions, "Value": value, "Unit": UNITS[name]}
            for name, value in values.items()
        ]
        with self.translate_errors(f"publish {', '.join(values)} of {self.environment}/{pipeline} in {self.namespace}"):
            self.client("cloudwatch").put_metric_data(Namespace=self.namespace, MetricData=data)
