"""Read parts of a topic in Spark's Python workers and write them to objects, without Spark's Kafka source.

With that source, the JVM reads each record, converts it to a row and sends it to Python, which takes more CPU time than
reading it in Python (docs/decisions/0058-landing-without-sparks-kafka-source.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from cdc_lake.contract.errors import TopicUnreadableError
from cdc_lake.jobs.landing.raw_writer import RawWriter
from resources.errors import ResourceError
from resources.kafka import record_batches
from resources.kafka.client import Broker
from resources.kafka.msk_iam import HINT, IamTokens
from resources.kafka.records import Ranges

_TIMEOUT_SECONDS = 60.0
"""How long a part waits for its next record, for example while a broker restarts."""


@dataclass(frozen=True)
class KafkaClient:
    """The brokers, and the region of an MSK cluster whose clients authenticate by IAM; "" for clients that do not."""

    bootstrap: str
    iam_region: str = ""

    def broker(self) -> Broker:
        """Return the connection for this process."""
        tokens = IamTokens(self.iam_region) if self.iam_region else None
        hint = HINT if self.iam_region else ""
        return Broker(self.bootstrap, timeout_seconds=_TIMEOUT_SECONDS, hint=hint, tokens=tokens)


@dataclass(frozen=True)
class PartWriter:
    """A function for mapInArrow: for each number in the column `id`, writes that part of the topic."""

    client: KafkaClient
    topic: str
    parts: Sequence[Ranges]
    writer: RawWriter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the writer's rows. Raises TopicUnreadableError, and what the writer raises."""
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self.writer(self._records(self.parts[number]))

    def _records(self, part: Ranges) -> Iterator[pa.RecordBatch]:
        try:
            yield from record_batches.read(self.client.broker(), self.topic, part)
        except ResourceError as error:
            raise TopicUnreadableError(error.user_message) from error


def divided(ranges: Ranges, parts: int) -> list[Ranges]:
    """Divide ranges into about this many parts of equal length; a part has offsets of one partition."""
    total = sum(end - first for first, end in ranges.values())
    found: list[Ranges] = []
    for partition, (first, end) in ranges.items():
        shares = max(1, round(parts * (end - first) / total))
        bounds = [first + (end - first) * share // shares for share in range(shares + 1)]
        found += [{partition: each} for each in pairwise(bounds) if each[0] < each[1]]
    return found
