"""One heartbeat as Debezium tells it in Kafka: a row of `cdc_heartbeat` that was read by a snapshot or streamed."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from resources.kafka_records import Message

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Heartbeat:
    """The counter, where it was committed and when (ms since 1970); `snapshot` for one that a snapshot read."""

    beats: int
    lsn: int
    source_ts_ms: int
    snapshot: bool


def heartbeat(topic: str, message: Message) -> Heartbeat | None:
    """The heartbeat of a record; None for a record that is none, which is told in the log.

    Passing over it loses nothing: where it was a heartbeat once, the next one's counter tells that it is missing.
    """
    if message.value is None:
        return None
    try:
        row = json.loads(message.value)
        return Heartbeat(
            beats=int(row["beats"]),
            lsn=int(row["__lsn"]),
            source_ts_ms=int(row["__source_ts_ms"]),
            snapshot=row["__snapshot"] not in (None, "false"),
        )
    except (ValueError, KeyError, TypeError) as error:
        log.warning(
            "topic %s, partition %d, offset %d: a record that is no heartbeat is passed over (%r): %r",
            *(topic, message.partition, message.offset, error, message.value[:100]),
        )
        return None
