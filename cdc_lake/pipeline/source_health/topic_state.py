"""The state of a topic at one moment: its id and offsets, and the newest heartbeats that were streamed to Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source import stream_progress
from cdc_lake.contract.source.epochs import Epoch, Start
from cdc_lake.contract.source.poll_state import Polls
from cdc_lake.contract.source.stream_progress import StreamProgress
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.registry_location import registry_location
from cdc_lake.pipeline.source_health.heartbeat import heartbeat
from resources.kafka.resource import Kafka

_SETTLE_SECONDS = 1.0
_HEARTBEATS = 60
"""How many heartbeats are read: ten minutes of regular ones, or one minute of those that a barrier writes."""
MAX_TRANSACTION_SECONDS = 90.0
"""Longer than transaction.timeout.ms, one minute, after which Kafka aborts the transaction of a killed producer."""


@dataclass(frozen=True)
class StreamedHeartbeat:
    """A streamed heartbeat, with its partition and offset."""

    watermark: Watermark
    partition: int
    offset: int


@dataclass(frozen=True)
class TopicState:
    """The state of a topic: `progress` is read first, then `heartbeats`, oldest first, then the offsets.

    If `settled` is true, all records that were written before the newest heartbeat are below `ends`. Otherwise an
    earlier transaction is still open in a partition: its end marker is being written and is already visible in other
    partitions, or its producer was killed. Without exactly-once this holds only for acknowledged heartbeats
    (pipeline/source_health/stored_offset.py).
    """

    topic_id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    heartbeats: tuple[StreamedHeartbeat, ...] = ()
    settled: bool = True
    progress: StreamProgress | None = None
    polled: Watermark | None = None
    """The bound and number of the last complete poll, read before the offsets; None for a pipeline with heartbeats."""

    @property
    def watermark(self) -> Watermark | None:
        """The newest heartbeat of any epoch, whether or not it is acknowledged."""
        return self.heartbeats[-1].watermark if self.heartbeats else None

    def end_watermark(self, pipeline: Pipeline, epoch: Epoch | None) -> Watermark | None:
        """Return the watermark of a reader that has consumed everything below `ends`; None if it is not known."""
        return self.streamed_watermark(pipeline, epoch) if self.settled else None

    def streamed_watermark(self, pipeline: Pipeline, epoch: Epoch | None) -> Watermark | None:
        """Return the newest acknowledged heartbeat of the epoch.

        Returns None before the epoch's first heartbeat: LSNs of the previous epoch may be those of another server.
        """
        if self.polled is not None:
            return self.polled
        if epoch is None:
            return _newest(self.heartbeats, None, None)
        limit = 0 if self.progress is None else self.progress.limit(epoch.number)
        return _newest(self.heartbeats, epoch.starts.get(pipeline.heartbeat_topic), limit)


def newest_heartbeat(
    kafka: Kafka, pipeline: Pipeline, since: Start | None = None, acknowledged: int | None = None
) -> Watermark | None:
    """Return the newest streamed heartbeat, or None before the first one; see TopicState.streamed_watermark().

    With `since`, returns only a heartbeat of the epoch that began there: LSNs of the previous epoch may be those of
    another server.
    """
    return _newest(_heartbeats(kafka, pipeline), since, acknowledged)


def _newest(heartbeats: Sequence[StreamedHeartbeat], since: Start | None, acknowledged: int | None) -> Watermark | None:
    for each in reversed(heartbeats):
        if since is not None and each.offset < since.offsets.get(each.partition, 0):
            return None
        if acknowledged is None or each.watermark.lsn <= acknowledged:
            return each.watermark
    return None


def _heartbeats(kafka: Kafka, pipeline: Pipeline) -> tuple[StreamedHeartbeat, ...]:
    """Return the newest heartbeats after the last one that a snapshot read, oldest first."""
    found: list[StreamedHeartbeat] = []
    if kafka.topic(pipeline.heartbeat_topic) is None:
        return ()
    registry = registry_location(kafka, pipeline)
    for message in reversed(kafka.tail(pipeline.heartbeat_topic, _HEARTBEATS)):
        parsed = heartbeat(pipeline.heartbeat_topic, message, registry)
        if parsed is None or parsed.snapshot:
            break
        watermark = Watermark(parsed.source_ts_ms, parsed.lsn)
        found.append(StreamedHeartbeat(watermark, message.partition, message.offset))
    return tuple(reversed(found))


def committed(kafka: Kafka, table: PipelineTable) -> TopicState:
    """Return the topic's id and committed offsets, without waiting for open transactions and without a watermark.

    Raises ContractError if the topic does not exist.
    """
    topic_id = _topic_id(kafka, table)
    return TopicState(topic_id, kafka.begin_offsets(table.topic), kafka.end_offsets(table.topic), settled=False)


def current(kafka: Kafka, table: PipelineTable, store: ObjectStore) -> TopicState:
    """Return the topic's current state; the stream's progress is read from `store`.

    Raises ContractError if the topic does not exist, and ObjectDamagedError.
    """
    pipeline = table.pipeline
    last = Polls(store, pipeline.name, table.name).read() if pipeline.polled else None
    # Read first: records that Connect acknowledges from here on may not be below the ends.
    progress = stream_progress.load(store, pipeline.name)
    heartbeats = () if pipeline.polled else _heartbeats(kafka, pipeline)
    topic_id = _topic_id(kafka, table)
    ends, settled = settled_ends(kafka, table.topic)
    return TopicState(
        topic_id=topic_id,
        begins=kafka.begin_offsets(table.topic),
        ends=ends,
        heartbeats=heartbeats,
        settled=settled,
        progress=progress,
        polled=None if last is None else last.poll.watermark,
    )


def _topic_id(kafka: Kafka, table: PipelineTable) -> str:
    found = kafka.topic(table.topic)
    if found is None:
        raise ContractError(
            f"Cannot read topic {table.topic}: it does not exist yet. Materialise {table.asset('topic')} first."
        )
    return found.topic_id


def require_settled(kafka: Kafka, topic: str, seconds: float = MAX_TRANSACTION_SECONDS) -> Mapping[int, int]:
    """Wait until all records that are written by now are committed or aborted; return the end offsets.

    Raises ContractError after `seconds`.
    """
    ends, settled = settled_ends(kafka, topic, seconds)
    if not settled:
        raise ContractError(
            f"Cannot read topic {topic} to its end: it has records of a transaction that has not ended for "
            f"{seconds:.0f} s, so that it is not known yet whether they are committed. Kafka aborts the transaction of "
            "a killed producer after its transaction.timeout.ms. Run this again then; if the error persists, read "
            "`cdc-lake logs connect` and `cdc-lake logs kafka`."
        )
    return ends


def settled_ends(kafka: Kafka, topic: str, seconds: float | None = None) -> tuple[Mapping[int, int], bool]:
    """Return the end offsets of committed records, and whether all records written before the call are below them.

    Waits for that up to `seconds`, by default one: Connect keeps a transaction open while it sends a batch.
    """
    written = kafka.written_offsets(topic)

    def current() -> tuple[Mapping[int, int], bool]:
        ends = kafka.end_offsets(topic)
        return ends, all(ends.get(partition, 0) >= end for partition, end in written.items())

    waited = Retrying(
        retry=retry_if_result(lambda found: not found[1]),
        stop=stop_after_delay(_SETTLE_SECONDS if seconds is None else seconds),
        wait=wait_fixed(0.02),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    found: tuple[Mapping[int, int], bool] = waited(current)
    return found
