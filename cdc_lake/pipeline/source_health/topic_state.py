"""A topic as it stands at one moment, and the newest heartbeat that was streamed into Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.epochs import Epoch, Start
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline.naming import Flow, TableFlow
from cdc_lake.pipeline.source_health.heartbeat import heartbeat
from resources.kafka import Kafka

_SETTLE_SECONDS = 1.0
_BEATS = 60
"""Ten minutes of heartbeats, or a minute of a barrier's."""
ENDS_WITHIN_SECONDS = 90.0
"""Longer than a transaction whose producer was killed stays open: transaction.timeout.ms is a minute."""


@dataclass(frozen=True)
class StreamedBeat:
    """A heartbeat that was streamed, and where it is in its topic."""

    watermark: Watermark
    partition: int
    offset: int


@dataclass(frozen=True)
class TopicState:
    """A topic at one moment; `beats`, oldest first, were read before the offsets.

    All that was written before the newest beat lies below `ends` where they are `settled`. Otherwise a transaction that
    began before it is open in some partition: one whose end is being written, and shows in others already, or one of a
    producer that was killed. Without exactly-once that holds for a beat that is acknowledged only
    (pipeline/source_health/stored_offset.py).
    """

    topic_id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    beats: tuple[StreamedBeat, ...] = ()
    settled: bool = True

    @property
    def watermark(self) -> Watermark | None:
        """The newest heartbeat, of whatever epoch, acknowledged or not."""
        return self.beats[-1].watermark if self.beats else None

    def passed(self, flow: Flow, epoch: Epoch | None, acknowledged: int | None) -> Watermark | None:
        """The watermark of whoever has taken all of this epoch before `ends`; None where that is not known."""
        return self.streamed(flow, epoch, acknowledged) if self.settled else None

    def streamed(self, flow: Flow, epoch: Epoch | None, acknowledged: int | None) -> Watermark | None:
        """The newest heartbeat at or before the LSN `acknowledged`, or of all where that is None.

        None before the epoch's first one: the newest counts the WAL of the epoch before then, which may be another
        server's.
        """
        return _newest(self.beats, None if epoch is None else epoch.starts.get(flow.heartbeat_topic), acknowledged)


def newest_beat(
    kafka: Kafka, flow: Flow, since: Start | None = None, acknowledged: int | None = None
) -> Watermark | None:
    """The newest heartbeat that was streamed into Kafka, None where none was yet; with `since`, of this epoch only:
    another server's WAL may well end before one that was streamed in the epoch before. See TopicState.streamed().
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
    """The newest heartbeats since the last one that a snapshot read, which no stream has passed; oldest first."""
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
    """The topic's id, offsets and watermark. Raises ContractError where there is no such topic."""
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
    """The ends of what is committed, once all that is written by now lies before them.

    Raises ContractError where it does not within `seconds`.
    """
    ends, settled = settled_ends(kafka, topic, seconds)
    if not settled:
        raise ContractError(
            f"topic {topic} has records of a transaction that has not ended for {seconds:.0f} s: whether they count, "
            "nobody can tell yet. Kafka ends what a killed producer left after its transaction.timeout.ms: run this "
            "again then, and look at `cdc-lake logs connect` and `cdc-lake logs kafka` if it stays so"
        )
    return ends


def settled_ends(kafka: Kafka, topic: str, seconds: float | None = None) -> tuple[Mapping[int, int], bool]:
    """The ends of what is committed, and whether all that was written when it was asked lies before them.

    Waits a moment for that, or `seconds`: a transaction of Connect is open for as long as one batch takes.
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
