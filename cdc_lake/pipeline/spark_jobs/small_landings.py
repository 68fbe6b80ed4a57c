"""Land small batches in this process: starting a Spark job takes longer than reading and writing a few records.

On EMR, a job run starts in seconds or minutes; the Spark server of `cdc-lake dev` may be busy with two other jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing import pending_offsets
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.landing.raw_writer import RawWriter
from cdc_lake.pipeline.spark_jobs.spark_wrapper import SparkWrapper
from resources.kafka.resource import Kafka

S = TypeVar("S")
R = TypeVar("R")

SMALL_LANDING_OFFSETS = 10_000
"""The maximum number of offsets that are landed without Spark: a client reads more than 100,000 records per second."""


@dataclass(frozen=True, eq=False)
class SmallLandings(SparkWrapper):
    """Runs jobs on Spark, except landings of at most SMALL_LANDING_OFFSETS offsets (implements `SparkJobs`).

    Records that are decoded when they are landed are always landed by Spark, whose expressions decode them.
    """

    kafka: Kafka

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """See SparkJobs."""
        if isinstance(spec, LandSpec) and spec.typed is None:
            chain = Chain(spec.location.store(), spec.pipeline, spec.topic, spec.chain)
            spans = pending_offsets.pending(chain.head(spec.head), spec)
            if sum(span.next - span.first for span in spans) <= SMALL_LANDING_OFFSETS:
                return landing.land(spec, self._writer_for(spec.topic))  # type: ignore[return-value]  # the job's report
        return self.spark.run(job, spec)

    def _writer_for(self, topic: str) -> landing.WriteRecords:
        """Return the function that reads offset ranges of the topic and passes the records to a RawWriter."""

        def write(writer: RawWriter, ranges: Mapping[int, tuple[int, int]]) -> Iterator[tuple[str, str]]:
            for rows in writer(self.kafka.read_batches(topic, ranges)):
                yield from ((row["kind"], row["json"]) for row in rows.to_pylist())

        return write
