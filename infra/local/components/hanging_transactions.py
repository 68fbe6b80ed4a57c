"""Find and abort transactions whose end Kafka has lost because its only broker was killed.

The coordinator stores the end of a transaction before the partitions get its marker. A broker that is killed between
both completes the transaction at its next start without a marker: while a single node restarts, its partitions have no
leader, and the coordinator takes them for deleted ones (TransactionMarkerChannelManager: "likely deleted already").
Readers at read_committed, and the start of Kafka Connect, then wait for that marker for ever.

A task of Connect writes records and their source offsets in one transaction. If it hangs in the topic of the offsets,
the offsets were not stored: both are aborted, and the connector sends the records again. If it had confirmed them to
PostgreSQL already, the pipeline stops, because its slot begins after its offset
(cdc_lake/pipeline/source_health/stream_continuity.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

TOOL = "org.apache.kafka.tools.TransactionsCommand"
OFFSETS_TOPIC = "cdc-lake-connect-offsets"
_COLUMNS = ["Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HangingTransaction:
    """An open transaction of a partition that its coordinator does not know."""

    topic: str
    partition: int
    producer: int
    start_offset: int


def abort(run_tool: Callable[[tuple[str, ...]], str]) -> list[HangingTransaction]:
    """Abort the hanging transactions of Connect, and return them; only log those of other producers.

    `run_tool` runs Kafka's tool with these arguments, and returns its output. Raises what it raises.
    """
    # With a timeout of 0 minutes, transactions of any age are found.
    found = list(parse(run_tool(("find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0"))))
    of_connect = {each.producer for each in found if each.topic == OFFSETS_TOPIC}
    aborted = []
    for each in found:
        place = f"partition {each.partition} of topic {each.topic}, from offset {each.start_offset} on"
        if each.producer not in of_connect:
            log.warning("kafka: a transaction of another producer hangs in %s: abort it with kafka-transactions", place)
            continue
        at = ("--topic", each.topic, "--partition", str(each.partition), "--start-offset", str(each.start_offset))
        run_tool(("abort", *at))
        log.warning("kafka: aborted a transaction that was open when the broker was killed, in %s", place)
        aborted.append(each)
    return aborted


def parse(output: str) -> Iterator[HangingTransaction]:
    """Yield the rows of the tool's table; lines above its header are log messages."""
    lines = iter(output.splitlines())
    for line in lines:
        if line.split()[: len(_COLUMNS)] == _COLUMNS:
            break
    for line in lines:
        match line.split():
            case [topic, partition, producer, _, _, start_offset, *_] if partition.isdigit():
                yield HangingTransaction(topic, int(partition), int(producer), int(start_offset))
