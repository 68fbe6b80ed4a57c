"""The state of a topic at one moment: its id and offsets, and the newest heartbeats that were streamed into Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.epochs import Epoch, Start
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline.naming import Flow, TableFlow
from cdc_lake.pipeline.source_health.heartbeat import heartbeat
from resources.kafka.resource import Kafka

_SETTLE_SECONDS = 1.0
_BEATS = 60
"""Ten minutes of heartbeats, or a minute of a barrier's."""
ENDS_WITHIN_SECONDS = 90.0
"""Longer than the transaction of a killed producer stays open: transaction.timeout.ms is a minute."""


@dataclass(frozen=True)
class StreamedBeat:
    """A streamed heartbeat, with its partition and offset."""

    watermark: Watermark
    partition: int
    offset: int


@dataclass(frozen=True)
class TopicState:
    """The state of a topic; `beats`, oldest first, were read before the offsets.

    If it is `settled`, all records that were written before the newest heartbeat are below `ends`. Otherwise a
    transaction that began before it is still open in a partition: its end is being written, and is visible in other
    partitions already, or its producer was killed. Without exactly-once this holds only for acknowledged heartbeats
    (pipeline/source_health/stored_offset.py).
    """

    topic_id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    beats: tuple[StreamedBeat, ...] = ()
    settled: bool = True

    @property
    def watermark(self) -> Watermark | None:
        """The newest heartbeat, of any epoch, acknowledged or not."""
        return self.beats[-1].watermark if self.beats else None

    def passed(self, flow: Flow, epoch: Epoch | None, acknowledged: int | None) -> Watermark | None:
        """Return the watermark of a reader that has consumed everything below `ends`; None if it is not known."""
        return self.streamed(flow, epoch, acknowledged) if self.settled else None

    def streamed(self, flow: Flow, epoch: Epoch | None, acknowledged: int | None) -> Watermark | None:
        """Return the newest heartbeat of the epoch up to the LSN `acknowledged`; None is no limit.

        Returns None before the epoch's first heartbeat: LSNs of the previous epoch may be those of another server.
        """
        return _newest(self.beats, None if epoch is None else epoch.starts.get(flow.heartbeat_topic), acknowledged)


def newest_beat(
    kafka: Kafka, flow: Flow, since: Start | None = None, acknowledged: int | None = None
) -> Watermark | None:
    """Return the newest streamed heartbeat, None if there is none yet; see TopicState.streamed().

    With `since` it returns only a heartbeat of that epoch: LSNs of the previous epoch may be those of another server.
    """
    return _newest(_beats(kafka, flow), since, acknowledged)


def _newest(beats: Sequence[StreamedBeat], since: Start | None, acknowledged: int | None) -> Watermark | None:
    for beat in reversed(beats):
        if since is not None and beat.offset < since.offsets.get(beat.partition, 0):
            return None
        if acknowledged is None or beat.watermark.lsn <= acknowledged:
            return beat.watermark
    return None


def _beats(kafka: Kafka, flow: Flow) -> tuple[StreamedBeat, ...]:
    """Return the newest heartbeats after the last one that a snapshot read, oldest first."""
    found: list[StreamedBeat] = []
    if kafka.topic(flow.heartbeat_topic) is None:
        return ()
    for message in reversed(kafka.tail(flow.heartbeat_topic, _BEATS)):
        beat = heartbeat(flow.heartbeat_topic, message)
        if beat is None or beat.snapshot:
            break
        found.append(StreamedBeat(Watermark(beat.source_ts_ms, beat.lsn), message.partition, message.offset))
    return tuple(reversed(found))


def now(kafka: Kafka, table: TableFlow) -> TopicState:
    """Return the topic's state. Raises ContractError if the topic does not exist."""
    flow = table.pipeline
    beats = _beats(kafka, flow)
    found = kafka.topic(table.topic)
    if found is None:
        raise ContractError(
            f"there is no topic {table.topic} yet: materialise {'/'.join(table.key('topic').path)} first"
        )
    ends, settled = settled_ends(kafka, table.topic)
    return TopicState(
        topic_id=found.topic_id,
        begins=kafka.begin_offsets(table.topic),
        ends=ends,
        beats=beats,
        settled=settled,
    )


def require_settled(kafka: Kafka, topic: str, seconds: float = ENDS_WITHIN_SECONDS) -> Mapping[int, int]:
    """Wait until all records that are written by now are committed or aborted; return the ends of committed records.

    Raises ContractError after `seconds`.
    """
    ends, settled = settled_ends(kafka, topic, seconds)
    if not settled:
        raise ContractError(
            f"topic {topic} has records of a transaction that has not ended for {seconds:.0f} s: it is not known yet "
            "whether they are committed. Kafka aborts the transaction of a killed producer after its "
            "transaction.timeout.ms: run this again then; if the error persists, look at `cdc-lake logs connect` and "
            "`cdc-lake logs kafka`"
        )
    return ends


def settled_ends(kafka: Kafka, topic: str, seconds: float | None = None) -> tuple[Mapping[int, int], bool]:
    """Return the ends of committed records, and whether all records that were written at the call are below them.

    Waits up to a second for that, or `seconds`: a transaction of Connect is open while Connect sends one batch.
    """
    written = kafka.written_offsets(topic)

    def look() -> tuple[Mapping[int, int], bool]:
        ends = kafka.end_offsets(topic)
        return ends, all(ends.get(partition, 0) >= end for partition, end in written.items())

    waited = Retrying(
        retry=retry_if_result(lambda found: not found[1]),
        stop=stop_after_delay(_SETTLE_SECONDS if seconds is None else seconds),
        wait=wait_fixed(0.02),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    found: tuple[Mapping[int, int], bool] = waited(look)
    return found
