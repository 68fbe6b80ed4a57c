"""Metrics of pipelines in CloudWatch, for alarms that work while Dagster is down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import dagster as dg
from pydantic import Field

from resources.aws.client import AwsResource

NAMESPACE = "cdc-lake"
WATERMARK_AGE, UNLANDED = "WatermarkAgeSeconds", "UnlandedOffsets"
UNITS: Mapping[str, str] = {WATERMARK_AGE: "Seconds", UNLANDED: "Count"}
"""The metrics there are; each has the dimensions `Environment` and `Pipeline`."""


class Metrics(Protocol):
    """Something that is told figures."""

    def put(self, pipeline: str, figures: Mapping[str, float]) -> None:
        """Tell a pipeline's figures as they are now, by names of UNITS."""


class NoMetrics(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Nobody is told (implements Metrics): the local profile's, whose alarms are Dagster's checks."""

    def put(self, pipeline: str, figures: Mapping[str, float]) -> None:
        """See Metrics."""


class CloudWatchMetrics(AwsResource):
    """Custom metrics of CloudWatch (implements Metrics)."""

    namespace: str = NAMESPACE
    environment: str = Field(min_length=1, description="The dimension that tells deployments in one account apart.")

    def put(self, pipeline: str, figures: Mapping[str, float]) -> None:
        """See Metrics. Raises Unreachable, AccessRefused or AwsRequestFailed."""
        if not figures:
            return
        dimensions = [{"Name": "Environment", "Value": self.environment}, {"Name": "Pipeline", "Value": pipeline}]
        data = [
            {"MetricName": name, "Dimensions": dimensions, "Value": value, "Unit": UNITS[name]}
            for name, value in figures.items()
        ]
        with self.explained(f"Putting {', '.join(figures)} of {self.environment}/{pipeline} into {self.namespace}"):
            self.client("cloudwatch").put_metric_data(Namespace=self.namespace, MetricData=data)
