"""A Kafka cluster as a Dagster resource; most of its methods are functions of the other modules in this folder.

The resource writes no change events: Kafka Connect writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar

import dagster as dg
from confluent_kafka.admin import AdminClient
from pydantic import Field, PrivateAttr

from resources.errors import OffsetsExpired, TopicMissing, Unreachable
from resources.kafka import (
    msk_iam,
    partition_offsets,
    records,
    tombstones,
    topic_changes,
    topic_settings,
)
from resources.kafka.client import Broker
from resources.kafka.msk import Msk
from resources.kafka.msk_iam import IamTokens, TokenSource
from resources.kafka.records import Message, Ranges
from resources.kafka.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")


def _as_method(function: Callable[Concatenate[Broker, AdminClient, P], T]) -> Callable[Concatenate[Kafka, P], T]:
    """Convert a function of a broker and an admin client to a method that supplies both."""

    @wraps(function)
    def method(self: Kafka, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(self._broker, self._client, *args, **kwargs)

    return method


class Kafka(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Kafka cluster. Reads are bounded and commit no offsets.

    >>> kafka = Kafka(bootstrap="localhost:9092")
    >>> kafka.end_offsets("msk.datalake.cdc_events")
    {0: 829}
    """

    bootstrap: str = Field(
        default="", description="host:port of one or more brokers, separated by commas; empty: those of `cluster`."
    )
    cluster: Msk | None = Field(default=None, description="The MSK cluster to connect to if `bootstrap` is empty.")
    security: Literal["plaintext", "iam"] = Field(
        default="plaintext",
        description="iam: over TLS, with the AWS credentials of the environment. For other methods, use `settings`.",
    )
    region: str = Field(default="us-east-1", description="The cluster's region, for iam.")
    settings: dict[str, str] = Field(
        default_factory=dict,
        repr=False,
        description="More of librdkafka's settings, such as SASL's. With them, landings use Spark's Kafka source.",
    )
    registry: Registry | None = Field(default=None, description="The schema registry of records in Avro.")
    hint: str = Field(default="", description="A sentence that is appended to connection errors.")
    timeout_seconds: float = Field(default=10.0, gt=0)

    _admin: AdminClient | None = PrivateAttr(default=None)
    _tokens: TokenSource | None = PrivateAttr(default=None)
    _bootstrap: str = PrivateAttr(default="")

    def servers(self) -> str:
        """Return the bootstrap brokers. Those of an MSK cluster are requested once and cached.

        Raises what Msk.bootstrap() raises.
        """
        if self.bootstrap:
            return self.bootstrap
        if not self._bootstrap:
            if self.cluster is None:
                raise Unreachable(
                    "Cannot connect to Kafka: neither `bootstrap` nor `cluster` is set in the Kafka resource. Set one "
                    "of them.",
                    self.hint,
                )
            self._bootstrap = self.cluster.bootstrap(self.security)
        return self._bootstrap

    def spark_options(self) -> dict[str, str]:
        """Return the options that Spark's Kafka source needs for the cluster, without the prefix `kafka.`.

        For IAM, the `all` jar of software.amazon.msk:aws-msk-iam-auth has to be on Spark's class path. `settings` are
        not included, since they are librdkafka's.
        """
        return {"bootstrap.servers": self.servers(), **(msk_iam.JAVA_CLIENT if self.security == "iam" else {})}

    @property
    def _broker(self) -> Broker:
        if self.security == "plaintext":
            return Broker(self.servers(), dict(self.settings), self.timeout_seconds, self.hint)
        if self._tokens is None:
            self._tokens = IamTokens(self.region)
        hint = f"{msk_iam.HINT} {self.hint}".strip()
        return Broker(self.servers(), dict(self.settings), self.timeout_seconds, hint, self._tokens)

    @property
    def _client(self) -> AdminClient:
        if self._admin is None:
            self._broker.require_reachable()
            self._admin = self._broker.admin()
        return self._admin

    topics = _as_method(topic_settings.names)
    topic = _as_method(topic_settings.describe)
    ensure_topic = _as_method(topic_changes.ensure)
    delete_topic = _as_method(topic_changes.delete)

    begin_offsets = _as_method(partition_offsets.begin_offsets)
    end_offsets = _as_method(partition_offsets.end_offsets)
    written_offsets = _as_method(partition_offsets.written_offsets)

    def ranges(self, topic: str, partition: int | None = None) -> dict[int, tuple[int, int]]:
        """Return the first and the end offset of the committed records, by partition (one, or all if None)."""
        begins, ends = self.begin_offsets(topic), self.end_offsets(topic)
        if partition is not None and partition not in ends:
            raise TopicMissing(
                f"Cannot read topic {topic}: it has no partition {partition}. Choose one of"
                f" {', '.join(map(str, sorted(ends)))}."
            )
        return {p: (begins[p], ends[p]) for p in sorted(ends) if partition in (None, p)}

    def peek(
        self,
        topic: str,
        partition: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        *,
        read_committed: bool = True,
    ) -> Iterator[Message]:
        """Yield records from `offset` (default: the first available) to the current end.

        Raises:
            TopicMissing: there is no such topic or partition.
            OffsetsExpired: `offset` is before the first available record, or after the end.
        """
        ranges = self.ranges(topic, partition)
        if offset is not None:
            for number, (first, end) in ranges.items():
                if not first <= offset <= end:
                    raise OffsetsExpired(
                        f"Cannot read topic {topic} from offset {offset}: partition {number} starts at {first} and"
                        f" ends before {end}. Choose an offset from {first} to {end}."
                    )
            ranges = {number: (offset, end) for number, (_, end) in ranges.items()}
        return islice(records.read(self._broker, topic, ranges, read_committed=read_committed), limit)

    def read(self, topic: str, ranges: Ranges) -> Iterator[Message]:
        """Yield the committed records of ranges of offsets, in order within a partition.

        Raises OffsetsExpired and WaitTimedOut.
        """
        return records.read(self._broker, topic, ranges)

    def read_batches(self, topic: str, ranges: Ranges) -> Iterator[pa.RecordBatch]:
        """Yield the records of read() as batches, one partition after another. See record_batches.read()."""
        from resources.kafka import record_batches  # noqa: PLC0415 - imports PyArrow, which most commands do not need

        return record_batches.read(self._broker, topic, ranges)

    def tail(self, topic: str, limit: int, partition: int | None = None) -> list[Message]:
        """Return the newest `limit` committed records, oldest first."""
        return records.tail(self._broker, topic, self.ranges(topic, partition), limit)

    def write_tombstones(self, topic: str, keys: Iterable[tuple[int, bytes]]) -> int:
        """Write tombstones for (partition, key) pairs of a compacted topic; return how many. See tombstones.write()."""
        return tombstones.write(self._broker, topic, keys)

    def count_records(self, topic: str, ranges: Ranges | None = None) -> int:
        """Return the number of committed records in `ranges` ({partition: (first, end)}) or in the whole topic.

        It reads the records, about 100,000 a second, so use it for small topics. The difference of two offsets is not
        the number of records, since transaction markers and aborted records use offsets too.
        """
        return records.count(self._broker, topic, self.ranges(topic) if ranges is None else ranges)
