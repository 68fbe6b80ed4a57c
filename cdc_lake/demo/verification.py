"""Compare source and lake of a pipeline, for demos and `cdc-lake aws smoke`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdc_lake.pipeline.naming import Flow
from cdc_lake.pipeline.operations import verification
from resources.spark.job_interface import SparkJobs


def compare(flow: Flow, resources: Mapping[str, Any], spark: SparkJobs) -> dict[str, dict[str, Any]]:
    """Land and apply everything, then return by lake table whether it equals the source, and how many rows it has."""
    systems = verification.Systems(
        flow.source_postgres(resources["postgres"]), resources["kafka"], resources["connect"], resources["store"], spark
    )
    seconds = resources["deployment"].stream_seconds
    found = verification.verify_tables(flow, flow.lake_tables, systems, seconds=seconds, apply=True)
    return {
        table.lake_table: {"clean": report.clean, "compared": report.compared, "source_rows": report.source_rows}
        for table, report in found
    }
