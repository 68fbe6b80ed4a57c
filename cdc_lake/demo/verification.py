"""Compare source and lake of a pipeline, for demos and `cdc-lake aws smoke`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdc_lake.jobs.verify import VerifyReport
from cdc_lake.pipeline.operations import verification
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.spark.job_interface import SparkJobs


def verify(
    pipeline: Pipeline, tables: Sequence[PipelineTable], resources: Mapping[str, Any], spark: SparkJobs
) -> list[tuple[PipelineTable, VerifyReport]]:
    """Land and apply everything, then compare lake tables with the source."""
    systems = verification.VerifySystems(
        pipeline.source_postgres(resources["postgres"]),
        resources["kafka"],
        resources["connect"],
        resources["store"],
        spark,
    )
    seconds = resources["deployment"].stream_seconds
    return list(verification.verify_tables(pipeline, tables, systems, seconds=seconds, apply=True))


def compare(pipeline: Pipeline, resources: Mapping[str, Any], spark: SparkJobs) -> dict[str, dict[str, Any]]:
    """Run verify(), and return for each lake table whether it equals the source, and its numbers of rows."""
    return {
        table.lake_table: {"clean": report.passed, "compared": report.compared, "source_rows": report.source_rows}
        for table, report in verify(pipeline, pipeline.lake_tables, resources, spark)
    }
