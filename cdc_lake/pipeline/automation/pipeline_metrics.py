"""A pipeline's two metrics for alarms: the age of the lake's watermark, and the number of unlanded offsets."""

from __future__ import annotations

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.naming import Flow
from cdc_lake.pipeline.source_health import topic_state
from resources.aws.metrics import UNLANDED, WATERMARK_AGE
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore


def now(flow: Flow, kafka: Kafka, store: ObjectStore) -> dict[str, float]:
    """Return the metrics by name: the age of the oldest watermark, and the number of unlanded offsets of all tables.

    The age is omitted while a table has no known watermark. Raises ContractError if a topic does not exist.
    """
    bucket = location(store).store()
    ages: list[float | None] = []
    unlanded = 0
    for table in flow.tables:
        # Read the chain before the topic, so that it never appears to be ahead of the topic.
        head = Chain(bucket, flow.name, table.topic).head()
        state = topic_state.now(kafka, table, bucket)
        unlanded += max(0, table_progress.behind(head, state))
        for each in table.in_targets:
            found = table_progress.lake_watermark(bucket, each, state)
            ages.append(None if found is None else standard_metadata.age(found))
    known = [age for age in ages if age is not None]
    oldest = {WATERMARK_AGE: max(known)} if known and len(known) == len(ages) else {}
    return {**oldest, UNLANDED: float(unlanded)}
