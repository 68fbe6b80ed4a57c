"""Checks of what is landed: the chain has no gap and reaches the topic's end, nothing lies in the dead letters."""

import os
from itertools import islice

import dagster as dg

from cdc_lake.contract import dead_letters, names
from cdc_lake.contract.chain import Chain
from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline import stream, topic_state
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
        items = [item for manifest in chain for item in manifest.objects]
        wanted = {item.key: (item.bytes, item.etag) for item in items if item.sink is None}
        prefix = names.topic_prefix(flow.name, table.topic)
        there = {item.key: (item.size, item.etag) for item in bucket.scan(prefix)}
        damaged = [key for key, expected in wanted.items() if there.get(key) != expected]
        # A sink connector may write its objects again, with more: who reads one verifies the records that are meant.
        adopted = list(dict.fromkeys(item.key for item in items if item.sink is not None))
        if adopted:
            common = os.path.commonprefix(adopted)  # noqa: RUF071 - of keys, which are texts and no paths
            present = {item.key for item in bucket.scan(common)}
            damaged += [key for key in adopted if key not in present]
        return dg.AssetCheckResult(
            passed=not damaged,
            metadata={
                "manifests": len(chain),
                "objects": len(wanted) + len(adopted),
                "missing_or_changed": dg.MetadataValue.json(damaged[:_SHOWN]),
            },
        )

    @dg.asset_check(
        asset=asset,
        description=(
            f"The manifests reach the end of {table.topic}, but for the {flow.spec.landing.flush_records} records "
            "that may wait, and no record expired before it was landed."
        ),
    )
    def landed_to_the_end(kafka: Kafka, store: ObjectStore) -> dg.AssetCheckResult:
        # The chain before the topic: what is landed meanwhile is then no more than the topic has.
        head = Chain(location(store).store(), flow.name, table.topic).head()
        state = topic_state.now(kafka, table)
        behind = stream.behind(head, state)
        same = head is None or head.topic_id == state.topic_id
        landed = {} if head is None else head.next_offsets()
        expired = sum(max(0, first - landed.get(partition, 0)) for partition, first in state.begins.items())
        return dg.AssetCheckResult(
            passed=same and not expired and 0 <= behind <= flow.spec.landing.flush_records,
            metadata={"offsets_behind": behind, "offsets_expired": expired, "same_topic": same},
        )

    @dg.asset_check(
        asset=asset,
        description=(
            f"No record of pipeline {flow.name} lies in the dead letters. `cdc-lake dlq list {flow.name}` tells which, "
            "and `dlq replay` applies them once their cause is mended."
        ),
    )
    def dead_letters_empty(store: ObjectStore) -> dg.AssetCheckResult:
        bucket = location(store).store()
        count = sum(1 for _ in dead_letters.keys(bucket, flow.name))
        first = {letter.id: letter.reason for letter in islice(dead_letters.letters(bucket, flow.name), _SHOWN)}
        told = f"{count} records are not in the lake: `cdc-lake dlq list {flow.name}` tells why"
        return dg.AssetCheckResult(
            passed=not count,
            description=told if count else None,
            metadata={"dead_letters": count, "first": dg.MetadataValue.json(first)},
        )

    return [manifests_contiguous, landed_to_the_end, dead_letters_empty]
