"""Checks of what is landed: the chain has no gap and reaches the topic's end, nothing lies in the dead letters."""

import dagster as dg

from cdc_lake.contract import dead_letters
from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline import stream
from cdc_lake.pipeline.flow import TableFlow, location
from resources.kafka import Kafka
from resources.object_store import ObjectStore

_SHOWN = 10


def build(table: TableFlow) -> list[dg.AssetChecksDefinition]:
    """The checks of a raw asset."""
    flow = table.pipeline
    asset = table.key("raw")

    @dg.asset_check(
        asset=asset, description="Every manifest starts where the one before it ended; every object is there."
    )
    def manifests_contiguous(store: ObjectStore) -> dg.AssetCheckResult:
        bucket = location(store).store()
        try:
            chain = list(stream.manifests(bucket, table))
        except ContractError as error:
            return dg.AssetCheckResult(passed=False, metadata={"fault": error.user_message})
        wanted = {item.key: (item.bytes, item.etag) for manifest in chain for item in manifest.objects}
        prefix = f"raw/{flow.name}/{table.topic}/partition="
        there = {item.key: (item.size, item.etag) for item in bucket.scan(prefix)}
        damaged = [key for key, expected in wanted.items() if there.get(key) != expected]
        return dg.AssetCheckResult(
            passed=bool(chain) and not damaged,
            metadata={
                "manifests": len(chain),
                "objects": len(wanted),
                "missing_or_changed": dg.MetadataValue.json(damaged[:_SHOWN]),
            },
        )

    @dg.asset_check(asset=asset, description="The records that flush_seconds and flush_records let wait, and no more.")
    def landed_to_the_end(kafka: Kafka, store: ObjectStore) -> dg.AssetCheckResult:
        state = stream.topic_state(kafka, table)
        head, behind = stream.unlanded(location(store).store(), table, state)
        same = head is not None and head.topic_id == state.topic_id
        return dg.AssetCheckResult(
            passed=same and 0 <= behind <= flow.spec.landing.flush_records,
            metadata={"offsets_behind": behind, "same_topic": same},
        )

    @dg.asset_check(asset=asset, description=f"No record of pipeline {flow.name} lies in the dead letters.")
    def dead_letters_empty(store: ObjectStore) -> dg.AssetCheckResult:
        keys = list(dead_letters.keys(location(store).store(), flow.name))
        return dg.AssetCheckResult(
            passed=not keys, metadata={"dead_letters": len(keys), "first": dg.MetadataValue.json(keys[:_SHOWN])}
        )

    return [manifests_contiguous, landed_to_the_end, dead_letters_empty]
