"""The heartbeats in Kafka, one after the other: their counter rises by one, and a snapshot comes before the stream.

The counter is in the row (`cdc_heartbeat.beats`) and is raised in the same transaction that makes the beat, so that
two streamed beats that follow one another differ by one. What was delivered twice has an LSN that was seen.
"""

from __future__ import annotations

from cdc_lake.contract.source.epochs import Epoch
from cdc_lake.contract.source.stream_progress import Heartbeat, StreamProgress
from cdc_lake.pipeline.naming import Flow
from cdc_lake.pipeline.source_health.heartbeat import heartbeat
from resources import lsn
from resources.kafka import Kafka
from resources.kafka_records import Message


def follow(
    kafka: Kafka, flow: Flow, epoch: Epoch, seen: StreamProgress | None
) -> tuple[StreamProgress, tuple[str, ...]]:
    """What was seen, read on to the topic's end; and the first thing that is wrong there, if anything is."""
    topic = flow.heartbeat_topic
    start = epoch.starts.get(topic)
    if seen is None:
        known = (None, {}) if start is None else (start.topic_id, start.offsets)
        seen = StreamProgress(epoch=epoch.number, topic_id=known[0], offsets=known[1])
    found = kafka.topic(topic)
    if found is None:
        gone = () if seen.topic_id is None else (f"topic {topic}, which carries the heartbeats, was deleted",)
        return seen, gone
    if seen.topic_id is not None and found.topic_id != seen.topic_id:
        fault = f"topic {topic}, which carries the heartbeats, was deleted and made again"
        return seen, (fault,)
    after = seen.model_copy(update={"topic_id": found.topic_id})
    for partition, (begin, end) in kafka.ranges(topic).items():
        first = max(begin, after.offsets.get(partition, 0))
        if after.beat is not None and begin > after.offsets.get(partition, 0):
            # Nobody looked for as long as the topic keeps beats: what they would have proved can't be told any more.
            after = after.model_copy(update={"beat": None})
        if first < end:
            for message in kafka.peek(topic, partition, first):
                after, fault = _next(topic, after, message)
                if fault:
                    return after, (fault,)
        after = after.model_copy(update={"offsets": {**after.offsets, partition: max(first, end)}})
    return after, ()


def _next(topic: str, seen: StreamProgress, message: Message) -> tuple[StreamProgress, str]:
    """What is seen after one more record, and what is wrong with it, if anything is."""
    told = heartbeat(topic, message)
    if told is None:
        return seen, ""
    if told.snapshot:
        return _told(seen, told.lsn, told.source_ts_ms)
    beat, last = Heartbeat(beats=told.beats, lsn=told.lsn), seen.beat
    if last is not None and beat.lsn <= last.lsn:
        return seen, ""  # delivered once more
    if last is None or beat.beats == last.beats + 1:
        return seen.model_copy(update={"beat": beat}), ""
    between = f"between {lsn.to_text(last.lsn)} and {lsn.to_text(beat.lsn)}"
    if beat.beats <= last.beats:
        return seen, f"the heartbeats' counter went back from {last.beats} to {beat.beats} {between}"
    missing = beat.beats - last.beats - 1
    return seen, f"{missing} heartbeats are missing {between} (after number {last.beats}): WAL was skipped there"


def _told(seen: StreamProgress, at: int, when_ms: int) -> tuple[StreamProgress, str]:
    """What is seen after a beat that a snapshot told."""
    if seen.beat is not None:
        return seen, (
            f"the connector took a snapshot by itself at {lsn.to_text(at)}, after the stream had begun: Kafka Connect "
            "had lost its offset, and rows that were deleted before the snapshot stay in the lake"
        )
    attempts = seen.snapshots if at in seen.snapshots else (*seen.snapshots, at)
    return seen.model_copy(update={"snapshots": attempts, "snapshot_ts_ms": when_ms}), ""
