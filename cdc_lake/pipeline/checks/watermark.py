"""Check the source watermark at each stage: the newest heartbeat or poll that the stage has processed must not be old.

A freshness policy observes runs, not data. Heartbeats are data: they continue while the source is idle, so that the
check passes, and stop when the connector stops, so that the check fails.
"""

from collections.abc import Callable

import dagster as dg

from cdc_lake.contract.objects.store import S3Store
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.checks.light_check import LightCheck, light_check
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake.pipeline.spec.field_types import seconds
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

_Find = Callable[[S3Store, PipelineTable, topic_state.TopicState], Watermark | None]


def light(table: PipelineTable) -> list[LightCheck]:
    """Return one check for each of topic, raw and the lake table of each target."""
    bounds = table.pipeline.spec.freshness
    return [
        _check(table, "topic", bounds.topic, table_progress.streamed_watermark),
        _check(table, "raw", bounds.raw, table_progress.raw_watermark),
        *(_check(each, "lake", bounds.lake, table_progress.lake_watermark) for each in table.in_targets),
    ]


def _check(table: PipelineTable, stage: str, bound: str, find: _Find) -> LightCheck:
    polled = table.pipeline.polled
    description = f"The newest heartbeat in {stage} was committed at the source in the last {bound}."
    if polled:
        description = (
            f"{stage} has the changes up to a time in the last {bound}. Deletes are {standard_metadata.DELETES}."
        )

    @light_check(
        asset=table.key(stage),
        name="watermark_fresh",
        description=description,
        metadata=tiers.LATENESS,
    )
    def watermark_fresh(kafka: Kafka, store: ObjectStore) -> dg.AssetCheckResult:
        bucket = location(store).store()
        found = find(bucket, table, topic_state.current(kafka, table, bucket))
        return dg.AssetCheckResult(
            passed=found is not None and standard_metadata.age(found) <= seconds(bound),
            metadata={
                "bound_seconds": seconds(bound),
                **standard_metadata.watermark(found),
                **({"deletes": standard_metadata.DELETES} if polled else {}),
            },
        )

    return watermark_fresh
