"""A topic as it stands at one moment, and the newest heartbeat that was streamed into Kafka.

Here: asking Kafka, so that what is said of the heartbeat holds for the offsets. Not here: what stages make of it
(stream.py), and what one heartbeat says (heartbeat.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake.contract.epochs import Epoch, Start
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.position import Watermark
from cdc_lake.pipeline.flow import Flow, TableFlow
from cdc_lake.pipeline.heartbeat import heartbeat
from resources.kafka import Kafka
from resources.kafka_records import Message

_SETTLE_SECONDS = 1.0
ENDS_WITHIN_SECONDS = 90.0
"""Longer than a transaction whose producer was killed stays open: transaction.timeout.ms is a minute."""


@dataclass(frozen=True)
class TopicState:
    """A topic at one moment; `watermark` was read before the offsets.

    All that was written before it lies below `ends` where they are `settled`. Otherwise a transaction that began before
    it is open in some partition: one whose end is being written, and shows in others already, or one of a producer that
    was killed.
    """

    topic_id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    watermark: Watermark | None
    heard_at: tuple[int, int] = (0, 0)
    """Partition and offset of the watermark's heartbeat."""
    settled: bool = True

    def passed(self, flow: Flow, epoch: Epoch | None) -> Watermark | None:
        """The watermark of whoever has taken all of this epoch before `ends`; None where that is not known."""
        return self.streamed(flow, epoch) if self.settled else None

    def streamed(self, flow: Flow, epoch: Epoch | None) -> Watermark | None:
        """The newest heartbeat, None before the epoch's first one: the newest counts the WAL of the epoch before then,
        which may be another server's.
        """
        start = None if epoch is None else epoch.starts.get(flow.heartbeat_topic)
        partition, offset = self.heard_at
        of_before = start is not None and offset < start.offsets.get(partition, 0)
        return None if of_before else self.watermark


def newest_beat(kafka: Kafka, flow: Flow, since: Start | None = None) -> Watermark | None:
    """The newest heartbeat that was streamed into Kafka, None where none was yet; with `since`, of this epoch only:
    another server's WAL may well end before one that was streamed in the epoch before.
    """
    message = _last_beat(kafka, flow)
    if message is None or (since is not None and message.offset < since.offsets.get(message.partition, 0)):
        return None
    return _watermark(flow.heartbeat_topic, message)


def _last_beat(kafka: Kafka, flow: Flow) -> Message | None:
    return None if kafka.topic(flow.heartbeat_topic) is None else kafka.last_message(flow.heartbeat_topic)


def now(kafka: Kafka, table: TableFlow) -> TopicState:
    """The topic's id, offsets and watermark. Raises ContractError where there is no such topic."""
    flow = table.pipeline
    message = _last_beat(kafka, flow)
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
        watermark=None if message is None else _watermark(flow.heartbeat_topic, message),
        heard_at=(0, 0) if message is None else (message.partition, message.offset),
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


def _watermark(topic: str, message: Message) -> Watermark | None:
    """A heartbeat's commit time and LSN; None for one that a snapshot read, which no stream has passed."""
    beat = heartbeat(topic, message)
    if beat is None or beat.snapshot:
        return None
    return Watermark(source_ts_ms=beat.source_ts_ms, lsn=beat.lsn)
