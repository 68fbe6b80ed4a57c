"""Checks of raw: the manifest chain has no gap and reaches the topic's end, and there are no dead letters."""

from collections.abc import Callable
from itertools import islice

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import chain_verification, tiers
from cdc_lake.pipeline.checks.chain_verification import VerifyResult
from cdc_lake.pipeline.checks.light_check import LightCheck, light_check
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake.pipeline.spark_jobs.small_landings import SMALL_LANDING_OFFSETS
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore

_MAX_SHOWN = 10


def build(table: PipelineTable) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a raw asset."""
    asset = table.key("raw")

    @dg.asset_check(
        asset=asset,
        description="In the whole chain every manifest starts where the previous one ended, and every object exists.",
        metadata=tiers.DAILY,
    )
    def manifests_whole(store: ObjectStore) -> dg.AssetCheckResult:
        return _verified(table, store, chain_verification.verify_whole)

    return [
        *(check.definition for check in _landing_checks(table)),
        manifests_whole,
        _dead_letters_empty(table).definition,
    ]


def light(table: PipelineTable) -> list[LightCheck]:
    """Return the checks that the health sensor evaluates without a run.

    `cdc-lake dlq drop` changes the result of one of them; in continuous mode, no run evaluates the others.
    """
    continuous = table.pipeline.spec.mode == "continuous"
    return [_dead_letters_empty(table), *(_landing_checks(table) if continuous else ())]


def _landing_checks(table: PipelineTable) -> list[LightCheck]:
    pipeline = table.pipeline
    asset = table.key("raw")
    waiting = table.landing.flush_records
    if pipeline.spec.mode == "continuous":
        waiting = max(waiting, SMALL_LANDING_OFFSETS)

    @light_check(
        asset=asset,
        description=(
            "Every manifest after the last verified one starts where the previous one ended, and its objects exist."
        ),
        blocking=True,
        op_tags=step_priority.RAW,
    )
    def manifests_contiguous(store: ObjectStore) -> dg.AssetCheckResult:
        return _verified(table, store, chain_verification.verify_new)

    @light_check(
        asset=asset,
        description=(
            f"At most {waiting} offsets of {table.topic} are not landed, and no record expired before it was landed."
        ),
        blocking=True,
        op_tags=step_priority.RAW,
    )
    def landed_to_the_end(kafka: Kafka, store: ObjectStore) -> dg.AssetCheckResult:
        # Read the chain before the topic, so that it never appears to be ahead of the topic.
        bucket = location(store).store()
        head = Chain(bucket, pipeline.name, table.topic).head()
        state = topic_state.current(kafka, table, bucket)
        behind = table_progress.offsets_behind(head, state)
        same = head is None or head.topic_id == state.topic_id
        landed = {} if head is None else head.next_offsets()
        expired = sum(max(0, first - landed.get(partition, 0)) for partition, first in state.begins.items())
        late = same and not expired and behind >= 0
        return dg.AssetCheckResult(
            passed=same and not expired and 0 <= behind <= waiting,
            # Waiting records are only late; expired records, and those of a deleted topic, are missing.
            severity=dg.AssetCheckSeverity.WARN if late else dg.AssetCheckSeverity.ERROR,
            metadata={"offsets_behind": behind, "offsets_expired": expired, "same_topic": same},
        )

    return [manifests_contiguous, landed_to_the_end]


def _dead_letters_empty(table: PipelineTable) -> LightCheck:
    pipeline = table.pipeline

    @light_check(
        asset=table.key("raw"),
        description=(
            f"Pipeline {pipeline.name} has no dead letters. `cdc-lake dlq list {pipeline.name}` lists them, and `dlq "
            "replay` applies them after their cause is fixed."
        ),
    )
    def dead_letters_empty(store: ObjectStore) -> dg.AssetCheckResult:
        bucket = location(store).store()
        count = sum(1 for _ in dead_letters.keys(bucket, pipeline.name))
        first = {letter.id: letter.reason for letter in islice(dead_letters.letters(bucket, pipeline.name), _MAX_SHOWN)}
        message = f"Records that are not in the lake: {count}. `cdc-lake dlq list {pipeline.name}` lists their causes."
        return dg.AssetCheckResult(
            passed=not count,
            description=message if count else None,
            metadata={"dead_letters": count, "first": dg.MetadataValue.json(first)},
        )

    return dead_letters_empty


def _verified(table: PipelineTable, store: ObjectStore, verify: Callable[[Chain], VerifyResult]) -> dg.AssetCheckResult:
    try:
        found = verify(Chain(location(store).store(), table.pipeline.name, table.topic))
    except ContractError as error:
        return dg.AssetCheckResult(passed=False, metadata={"fault": error.user_message})
    return dg.AssetCheckResult(
        passed=not found.damaged,
        metadata={
            "manifests": found.to - found.since,
            "verified_to": found.to,
            "objects": found.objects,
            "missing_or_changed": dg.MetadataValue.json(found.damaged[:_MAX_SHOWN]),
        },
    )
