"""A table's progress: the changes that are landed, those that are applied, and the source watermark of each stage.

A heartbeat is a row of the source and is streamed from the WAL like every change: a stage that has processed one has
processed everything that the source committed before it. A stage's watermark is the newest heartbeat for which this is
proven. It advances even while the source is idle.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.source.epochs import Epochs, Start
from cdc_lake.contract.table import timeline
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.contract.table.lease import Claim
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.landing.pending_offsets import recreated_error
from cdc_lake.jobs.landing.topic_reader import KafkaClient
from cdc_lake.pipeline import lake_commit
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.registry_location import registry_location
from cdc_lake.pipeline.short_digest import short_digest
from cdc_lake.pipeline.source_health import stored_offset, stream_continuity, topic_state
from cdc_lake.pipeline.source_health.topic_state import TopicState
from resources.connect.connector_interface import Connectors
from resources.kafka.resource import Kafka
from resources.postgres.lsn import to_text

_HEARTBEAT_SECONDS = 1.0


@dataclass(frozen=True)
class LandingInput:
    """The input of a landing run: the chain with its newest manifest, the topic's state, and the job's spec."""

    chain: Chain
    head: Manifest | None
    state: TopicState
    spec: LandSpec

    @property
    def offsets_behind(self) -> int:
        """The number of offsets that the chain is behind the topic; see offsets_behind()."""
        return offsets_behind(self.head, self.state)


def landing_input(table: PipelineTable, kafka: Kafka, location: S3Location, claim: Claim | None = None) -> LandingInput:
    """Return the input of a landing run; reads the end of a topic's chain, and then the end of the topic.

    In this order, records that another run lands in between are not reported as lost, and no record of a topic that a
    reset deletes is added to the next chain. `claim` is the landing lease that the caller holds. Raises
    TopicRecreatedError if the topic is not the epoch's, TableIncompleteError if the table is being added, and what
    topic_state.current() and Chain.head() raise.
    """
    store = location.store()
    chain = Chain(store, table.pipeline.name, table.topic)
    head = chain.head()
    state = topic_state.current(kafka, table, store)
    # Read after the topic's ends: an epoch that begins later has no pending records below these ends.
    epoch = Epochs(store, table.pipeline.name).current()
    stream_continuity.require_complete_topic(table, epoch)
    start = None if epoch is None else epoch.starts.get(table.topic)
    if start is not None and start.topic_id != state.topic_id:
        raise recreated_error(table.pipeline.name, table.topic, start.topic_id, state.topic_id)
    spec = LandSpec(
        location=location,
        pipeline=table.pipeline.name,
        topic=table.topic,
        topic_id=state.topic_id,
        begins=state.begins,
        ends=state.ends,
        chain=chain.id,
        head=0 if head is None else head.number,
        kafka=kafka.spark_options(),
        client=_client(kafka),
        watermark=state.end_watermark(table.pipeline, epoch),
        epoch=0 if epoch is None else epoch.number,
        claim=claim,
        records_per_object=table.landing.records_per_object,
        record_bytes=table.landing.record_bytes,
        dead_letter_limit=table.pipeline.spec.dead_letter_limit,
        landing=table.landing.format,
        typed=table.typed_landing,
        registry=registry_location(kafka, table.pipeline),
        transforms=table.landing_transforms,
    )
    return LandingInput(chain, head, state, spec)


def _client(kafka: Kafka) -> KafkaClient | None:
    """Return the connection for a spec; None for a cluster with more settings, which may be secret."""
    if kafka.settings:
        return None
    return KafkaClient(kafka.servers(), kafka.region if kafka.security == "iam" else "")


def barrier(
    postgres: SourcePostgres,
    kafka: Kafka,
    connect: Connectors,
    pipeline: Pipeline,
    seconds: float,
    *,
    since: Start | None = None,
    running: Callable[[], object] = lambda: None,
    poll_seconds: float = _HEARTBEAT_SECONDS,
) -> Watermark:
    """Wait until everything that the source has committed by now is in Kafka; return the watermark.

    Writes a heartbeat and waits until it, or a later one, is streamed; with `since`, after that start of an epoch.
    Heartbeats that a snapshot read do not count, so this also waits for a running snapshot. The heartbeat is written
    repeatedly, because the stream may start later. Without exactly-once it also waits until Connect has stored the
    heartbeat's offset: until then another partition may lack earlier changes. Calls `running` and reads Connect's
    offset every `poll_seconds`. Raises ContractError after `seconds`, and what `running` raises.
    """
    schema = pipeline.spec.source.schema_
    lsn = postgres.write_heartbeat(schema)
    written_at = polled_at = time.monotonic()
    acknowledged = stored_offset.acknowledged_lsn(pipeline, connect)

    def newest_heartbeat() -> Watermark | None:
        nonlocal written_at, polled_at, acknowledged
        if time.monotonic() - polled_at >= poll_seconds:
            running()
            acknowledged = stored_offset.acknowledged_lsn(pipeline, connect)
            polled_at = time.monotonic()
        if time.monotonic() - written_at >= _HEARTBEAT_SECONDS:
            postgres.write_heartbeat(schema)
            written_at = time.monotonic()
        return topic_state.newest_heartbeat(kafka, pipeline, since, acknowledged)

    waited = Retrying(
        retry=retry_if_result(lambda found: found is None or found.lsn < lsn),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(0.1),
    )
    try:
        found = waited(newest_heartbeat)
    except RetryError as error:
        seen = topic_state.newest_heartbeat(kafka, pipeline, since)
        newest = "none" if seen is None else to_text(seen.lsn)
        if acknowledged is not None:
            newest += f"; Connect has stored the offset of LSN {to_text(acknowledged)}"
        raise ContractError(
            f"Cannot confirm that Kafka has all changes up to LSN {to_text(lsn)}: connector {pipeline.connector} did "
            f"not write the heartbeat at that LSN to {pipeline.heartbeat_topic} within {seconds:.0f} s (the newest one "
            f"there: {newest}). Read `cdc-lake logs connect` and the connector's status, then materialise the topic "
            "again."
        ) from error
    if found is None:
        raise AssertionError("the wait ends with a heartbeat or an error")
    return found


def barrier_while_running(
    postgres: SourcePostgres,
    kafka: Kafka,
    connect: Connectors,
    pipeline: Pipeline,
    seconds: float,
    poll_seconds: float,
    since: Start | None = None,
) -> Watermark:
    """Wait like barrier(), and raise what Connectors.wait_running() raises if the connector fails meanwhile."""
    return barrier(
        postgres,
        kafka,
        connect,
        pipeline,
        seconds,
        since=since,
        running=lambda: connect.wait_running(pipeline.connector),
        poll_seconds=poll_seconds,
    )


def offsets_behind(head: Manifest | None, state: TopicState) -> int:
    """Return how many offsets the chain is behind the topic.

    Negative if a partition ends before its landed offsets: the topic lost records, or `state` is older than `head`. A
    topic that was re-created counts as not landed at all.
    """
    same = head is not None and head.topic_id == state.topic_id
    landed = head.next_offsets() if head is not None and same else {}
    missing = [end - landed.get(partition, 0) for partition, end in state.ends.items()]
    return min(missing) if min(missing, default=0) < 0 else sum(missing)


def raw_watermark(store: ObjectStore, table: PipelineTable, state: TopicState) -> Watermark | None:
    """Return the watermark of the landed records: the topic's own watermark if all its records are landed."""
    return _landed_watermark(store, table, Chain(store, table.pipeline.name, table.topic).head(), state)


def _landed_watermark(
    store: ObjectStore, table: PipelineTable, head: Manifest | None, state: TopicState
) -> Watermark | None:
    before = None if head is None else head.watermark
    if head is not None and head.topic_id != state.topic_id:
        return before
    landed = {} if head is None else head.next_offsets()
    if any(end > landed.get(partition, 0) for partition, end in state.ends.items()):  # more may have been landed since
        return before
    epoch = Epochs(store, table.pipeline.name).current()
    if epoch is not None and head is not None and epoch.number != head.epoch:
        return before
    return state.end_watermark(table.pipeline, epoch) or before


def streamed_watermark(store: ObjectStore, table: PipelineTable, state: TopicState) -> Watermark | None:
    """Return the watermark of the records in Kafka."""
    return state.streamed_watermark(table.pipeline, Epochs(store, table.pipeline.name).current())


def lake_watermark(store: ObjectStore, table: PipelineTable, state: TopicState) -> Watermark | None:
    """Return the watermark of the applied records: raw's watermark if all landed records are applied."""
    return applied_watermark(store, table, state, lake_commit.newest(store, table))


def applied_watermark(
    store: ObjectStore, table: PipelineTable, state: TopicState, commit: timeline.Commit | None
) -> Watermark | None:
    """Return lake_watermark() for a table whose newest commit is `commit`."""
    applied = None if commit is None else commit.checkpoint
    head = Chain(store, table.pipeline.name, table.topic).head(applied.manifest if applied else 0)
    if (applied.manifest if applied else 0) == (head.number if head else 0):
        return _landed_watermark(store, table, head, state)
    return None if applied is None else applied.watermark


def lake_commits(store: ObjectStore, pipeline: Pipeline) -> dict[str, str]:
    """Return the instant of the newest commit of each table in the first target, by table name, if it has a commit."""
    commits = ((table.name, lake_commit.newest(store, table)) for table in pipeline.tables)
    return {name: commit.instant for name, commit in commits if commit is not None}


def commits_digest(commits: Mapping[str, str]) -> str:
    """Return a digest of the result of lake_commits(), which changes with each commit."""
    return short_digest(json.dumps(commits, sort_keys=True))


def manifests(store: ObjectStore, table: PipelineTable) -> Iterator[Manifest]:
    """Yield all manifests of the table's chain, each checked against the previous one."""
    return Chain(store, table.pipeline.name, table.topic).since(0)
