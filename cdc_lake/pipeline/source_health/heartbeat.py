"""Parse a heartbeat record of Kafka: a row of `cdc_heartbeat` that a snapshot read, or that was streamed."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from resources.kafka.records import Message

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat's counter, LSN and commit time (ms since 1970), and whether a snapshot read it."""

    beats: int
    lsn: int
    source_ts_ms: int
    snapshot: bool


def heartbeat(topic: str, message: Message) -> Heartbeat | None:
    """Return the heartbeat of a record; log a record that is not a heartbeat, and return None.

    Skipping a damaged heartbeat is safe: the counter of the next one shows that it is missing.
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
            "topic %s, partition %d, offset %d: skipped a record that is not a heartbeat (%r): %r",
            *(topic, message.partition, message.offset, error, message.value[:100]),
        )
        return None
