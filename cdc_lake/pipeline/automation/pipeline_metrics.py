"""A pipeline's two metrics for alarms: the age of the lake's watermark, and the number of unlanded offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation.sensors.parallel_map import map_parallel
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import topic_state
from resources.aws.metrics import UNLANDED, WATERMARK_AGE
from resources.errors import ResourceError
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore


@dataclass(frozen=True)
class Measurement:
    """The values by metric name, and for each table whose progress is not known the reason, by table name."""

    values: Mapping[str, float]
    unknown: Mapping[str, str]


MAX_SECONDS = 15.0
"""The time for all tables. The sensor that calls measure() may already have used 40 s of its 60 s for checks."""


def measure(pipeline: Pipeline, kafka: Kafka, store: ObjectStore) -> Measurement:
    """Return the age of the oldest watermark, and the number of unlanded offsets of all tables.

    The age is omitted while a table has no known watermark: the alarm treats missing data as a breach. The offsets of
    a table whose progress is not known, such as one without a topic, are not counted.
    """
    bucket = location(store).store()

    def measure_table(table: PipelineTable) -> tuple[int, list[float | None]]:
        # Read the chain before the topic, so that it never appears to be ahead of the topic.
        head = Chain(bucket, pipeline.name, table.topic).head()
        state = topic_state.current(kafka, table, bucket)
        watermarks = [table_progress.lake_watermark(bucket, each, state) for each in table.in_targets]
        ages = [None if found is None else standard_metadata.age(found) for found in watermarks]
        return max(0, table_progress.offsets_behind(head, state)), ages

    ages: list[float | None] = []
    unlanded = 0
    unknown: dict[str, str] = {}
    for table, found in zip(
        pipeline.tables, map_parallel(pipeline.tables, measure_table, seconds=MAX_SECONDS), strict=True
    ):
        if isinstance(found, ContractError | ResourceError):
            unknown[table.name] = found.user_message
        elif isinstance(found, Exception):
            raise found
        else:
            unlanded += found[0]
            ages += found[1]
    known = [age for age in ages if age is not None]
    oldest = {WATERMARK_AGE: max(known)} if known and not unknown and len(known) == len(ages) else {}
    return Measurement({**oldest, UNLANDED: float(unlanded)}, unknown)
