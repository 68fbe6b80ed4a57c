"""Landing a table by whom its pipeline says: the land job, or the adoption of what a sink connector writes.

Here: which of the two, and the topic's record over Kafka. Not here: either job (jobs/land.py, jobs/adopt.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from cdc_lake.contract import names
from cdc_lake.contract.manifest import Manifest, Span
from cdc_lake.contract.store import ObjectStore
from cdc_lake.jobs import adopt
from cdc_lake.jobs import land as landing
from cdc_lake.jobs.adopt import AdoptSpec
from cdc_lake.jobs.land import LandReport, LandSpec
from cdc_lake.jobs.sink_listing import Sink
from cdc_lake.pipeline.flow import TableFlow
from resources.errors import OffsetsExpired
from resources.kafka import Kafka


@dataclass(frozen=True)
class KafkaRecord:
    """A topic's committed records, read from Kafka (implements `topic_record.TopicRecord`)."""

    kafka: Kafka
    topic: str

    def offsets(self, partition: int, first: int, end: int) -> list[int] | None:
        """See TopicRecord. `end` is at most where the topic's committed records end."""
        if first >= end:
            return []
        if first < self.kafka.begin_offsets(self.topic).get(partition, 0):
            return None
        try:
            messages = self.kafka.peek(self.topic, partition, first)
            return [message.offset for message in takewhile(lambda message: message.offset < end, messages)]
        except OffsetsExpired:  # since it was asked where the topic begins
            return None


def sink(table: TableFlow) -> Sink | None:
    """The sink connector that writes the table's objects, None where the land job does."""
    spec = table.pipeline.spec.landing.sink
    if spec is None:
        return None
    return Sink(spec.layout, spec.prefix or names.sink_prefix(table.pipeline.name), spec.envelope)


def pending(table: TableFlow, head: Manifest | None, spec: LandSpec) -> Sequence[Span]:
    """What is not landed yet. Raises what the job's own pending() raises."""
    found = sink(table)
    return landing.pending(head, spec) if found is None else adopt.pending(head, AdoptSpec(spec, found))


def land(
    table: TableFlow, kafka: Kafka, spec: LandSpec, run: Callable[[Callable[[Any, Any], Any], Any], Any]
) -> LandReport:
    """Land, or adopt; `run` runs a Spark job with its spec. Raises what the job raises."""
    found = sink(table)
    report: LandReport = (
        run(landing.run, spec) if found is None else adopt.run(AdoptSpec(spec, found), KafkaRecord(kafka, table.topic))
    )
    return report


def unadopted(store: ObjectStore, spec: LandSpec, where: Sink) -> list[str]:
    """The objects that can hold something new, sorted. Raises what adopt.new_objects() raises."""
    return sorted(adopt.new_objects(store, AdoptSpec(spec, where)))
