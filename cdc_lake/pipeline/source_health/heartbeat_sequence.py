"""Check the sequence of heartbeats in Kafka: their counter increases by one, and a snapshot precedes the stream.

The transaction that writes a heartbeat increments the counter in its row (`cdc_heartbeat.beats`), so that consecutive
streamed heartbeats differ by one. A heartbeat that was delivered twice has an LSN that was seen before.
"""

from __future__ import annotations

from cdc_lake.contract.source.epochs import Epoch
from cdc_lake.contract.source.stream_progress import Heartbeat, StreamProgress
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.registry_location import registry_location
from cdc_lake.pipeline.source_health.heartbeat import Heartbeat as Parsed
from cdc_lake.pipeline.source_health.heartbeat import heartbeat
from resources.kafka.resource import Kafka
from resources.postgres import lsn


def read_new(
    kafka: Kafka, pipeline: Pipeline, epoch: Epoch, seen: StreamProgress | None
) -> tuple[StreamProgress, tuple[str, ...]]:
    """Read the heartbeats after `seen` up to the topic's end; return the new progress, and the first fault if any.

    Without the progress of this epoch, reads from the epoch's start. The faults are an empty tuple, or one message.
    """
    topic = pipeline.heartbeat_topic
    start = epoch.starts.get(topic)
    if seen is None or seen.epoch != epoch.number:
        known = (None, {}) if start is None else (start.topic_id, start.offsets)
        seen = StreamProgress(epoch=epoch.number, topic_id=known[0], offsets=known[1])
    found = kafka.topic(topic)
    if found is None:
        faults = () if seen.topic_id is None else (f"topic {topic}, which contains the heartbeats, was deleted",)
        return seen, faults
    if seen.topic_id is not None and found.topic_id != seen.topic_id:
        fault = f"topic {topic}, which contains the heartbeats, was deleted and re-created"
        return seen, (fault,)
    after = seen.model_copy(update={"topic_id": found.topic_id})
    registry = registry_location(kafka, pipeline)
    for partition, (begin, end) in kafka.ranges(topic).items():
        first = max(begin, after.offsets.get(partition, 0))
        if after.heartbeat is not None and begin > after.offsets.get(partition, 0):
            # Unread heartbeats have expired, so that the counter cannot be compared with the last one that was read.
            after = after.model_copy(update={"heartbeat": None})
        if first < end:
            for message in kafka.peek(topic, partition, first):
                after, fault = _next(after, heartbeat(topic, message, registry))
                if fault:
                    return after, (fault,)
        after = after.model_copy(update={"offsets": {**after.offsets, partition: max(first, end)}})
    return after, ()


def _next(seen: StreamProgress, parsed: Parsed | None) -> tuple[StreamProgress, str]:
    """Return the progress after one more record (None: it is not a heartbeat), and the fault that it shows or ""."""
    if parsed is None:
        return seen, ""
    if parsed.snapshot:
        return _after_snapshot_read(seen, parsed.lsn, parsed.source_ts_ms)
    newest, last = Heartbeat(counter=parsed.counter, lsn=parsed.lsn), seen.heartbeat
    if last is not None and newest.lsn <= last.lsn:
        return seen, ""  # delivered again
    if last is None or newest.counter == last.counter + 1:
        return seen.model_copy(update={"heartbeat": newest}), ""
    between = f"between {lsn.to_text(last.lsn)} and {lsn.to_text(newest.lsn)}"
    if newest.counter <= last.counter:
        return seen, f"the heartbeats' counter went back from {last.counter} to {newest.counter} {between}"
    missing = newest.counter - last.counter - 1
    return seen, f"{missing} heartbeats are missing {between} (after number {last.counter}): WAL was skipped there"


def _after_snapshot_read(seen: StreamProgress, at: int, when_ms: int) -> tuple[StreamProgress, str]:
    """Return the progress after a heartbeat that a snapshot read, and the fault that it shows or ""."""
    if seen.heartbeat is not None:
        return seen, (
            f"the connector took a new snapshot at {lsn.to_text(at)}, after the stream had begun: Kafka Connect had "
            "lost its offset, and rows that were deleted before the snapshot stay in the lake"
        )
    attempts = seen.snapshots if at in seen.snapshots else (*seen.snapshots, at)
    return seen.model_copy(update={"snapshots": attempts, "snapshot_ts_ms": when_ms}), ""
