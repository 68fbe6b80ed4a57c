"""Land a table in the mode of its pipeline: by the land job, or by adopting the objects of a sink connector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from cdc_lake.contract.errors import ForeignObjectError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.sinks import sink_names
from cdc_lake.contract.source.topic_records import fingerprint_number
from cdc_lake.jobs.adoption import adopt
from cdc_lake.jobs.adoption.adopt import AdoptSpec
from cdc_lake.jobs.adoption.sink import Sink
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing import pending_offsets
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.errors import OffsetsExpired
from resources.kafka.resource import Kafka


@dataclass(frozen=True)
class KafkaTopic:
    """Reads a topic's committed records from Kafka (implements `topic_records.TopicReader`)."""

    kafka: Kafka
    topic: str

    def records(self, partition: int, first: int, end: int) -> list[tuple[int, int]] | None:
        """See TopicReader. `end` is at most the end of the topic's committed records."""
        if first >= end:
            return []
        if first < self.kafka.begin_offsets(self.topic).get(partition, 0):
            return None
        try:
            messages = self.kafka.peek(self.topic, partition, first)
            below_end = takewhile(lambda message: message.offset < end, messages)
            return [(message.offset, fingerprint_number(message.value)) for message in below_end]
        except OffsetsExpired:  # they expired after begin_offsets() was read
            return None


def sink(table: PipelineTable) -> Sink | None:
    """Return the sink connector that writes the table's objects; None if the land job writes them."""
    spec = table.landing.sink
    if spec is None:
        return None
    return Sink(spec.layout, spec.prefix or object_names.sink_prefix(table.pipeline.name), spec.envelope)


def written(table: PipelineTable, store: ObjectStore) -> Iterator[str]:
    """Yield the keys of the objects that a sink connector has written from the table's topic."""
    found = sink(table)
    if found is not None:
        for info in store.scan(sink_names.topic_prefix(found.layout, found.prefix, table.topic)):
            with suppress(ForeignObjectError):  # not an object of the sink connector
                if sink_names.parse(found.layout, found.prefix, info.key).topic == table.topic:
                    yield info.key


def pending(table: PipelineTable, head: Manifest | None, spec: LandSpec) -> Sequence[Span]:
    """Return the spans of offsets that are not landed yet. Raises what the job's function pending() raises."""
    found = sink(table)
    return pending_offsets.pending(head, spec) if found is None else adopt.pending(head, AdoptSpec(spec, found))


def land(
    table: PipelineTable, kafka: Kafka, spec: LandSpec, run: Callable[[Callable[[Any, Any], Any], Any], Any]
) -> LandReport:
    """Land or adopt new records; `run` runs a Spark job with its spec. Raises what the job raises."""
    found = sink(table)
    report: LandReport = (
        run(landing.run, spec) if found is None else adopt.run(AdoptSpec(spec, found), KafkaTopic(kafka, table.topic))
    )
    return report


def unadopted(store: ObjectStore, spec: LandSpec, where: Sink) -> list[str]:
    """Return the sorted keys of objects that can contain new records. Raises what adopt.new_objects() raises."""
    return sorted(adopt.new_objects(store, AdoptSpec(spec, where)))
