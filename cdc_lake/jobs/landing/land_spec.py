"""The input of a landing run."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.secret_fields import OpenSettings
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.landing.raw_formats import LandingFormat
from cdc_lake.jobs.landing.topic_reader import KafkaClient
from cdc_lake.jobs.landing.typed_rows import TypedLanding


@dataclass(frozen=True)
class LandSpec:
    """The input of one landing run.

    `begins` and `ends` are offsets by partition, fixed before the run: the earliest offset that the broker still has,
    and the last stable offset. `kafka` are options of Spark's Kafka source without their prefix `kafka.`. `client` is
    how librdkafka connects; None if that needs settings that a spec cannot contain. `chain` is the id of the manifest
    chain, and `head` the number of its newest manifest, 0 for an empty chain: both were read before `topic_id`,
    `begins` and `ends`. A manifest after `head` can end after `ends`, if another run landed it meanwhile. `claim` is
    the landing lease under which all of these were read: without it, records could be landed while a reset runs. It is
    not needed to exclude concurrent landing runs.
    """

    location: S3Location
    pipeline: str
    topic: str
    topic_id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    chain: str
    head: int
    kafka: OpenSettings
    client: KafkaClient | None = None
    watermark: Watermark | None = None
    epoch: int = 0
    records_per_object: int = 100_000
    bytes_per_object: int = 64 * 2**20
    record_bytes: int = 8 * 2**20
    """A larger record becomes a dead letter. The default is half of resources.deployment.RECORD_BYTES."""
    dead_letter_limit: int = 1000
    """With more dead letters the run fails: the cause is then probably not in the records."""
    landing: LandingFormat = "json"
    registry: RegistryLocation | None = None
    """The registry of a topic in Avro; None for one in JSON."""
    typed: TypedLanding | None = None
    """How to decode records; None if they are not decoded, and the objects contain their values."""
    transforms: TableTransforms | None = None
    """The transforms to apply to the records."""
    claim: lease.Claim | None = None
    attempt: str = field(default_factory=lambda: str(uuid.uuid4()))
