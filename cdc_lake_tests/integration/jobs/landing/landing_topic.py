"""A topic of one test, written by transactions, and the records that landing it should give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from confluent_kafka import Message, Producer

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import S3Store
from cdc_lake.jobs.landing import land
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.landing.topic_reader import KafkaClient
from cdc_lake_tests.integration.jobs.engines import Engines
from resources.waiting import until

Record = tuple[int, int, bytes]
"""Partition, offset, value."""


@dataclass
class Topic:
    """A topic in its own pipeline; `committed` are the records of committed transactions."""

    engines: Engines
    name: str
    partitions: int = 1
    committed: set[Record] = field(default_factory=set)
    producer: Producer = field(init=False)
    serial: int = 0
    newest: dict[int, int] = field(default_factory=dict)
    """The last produced offset by partition."""

    def __post_init__(self) -> None:
        kafka = self.engines.kafka
        kafka.ensure_topic(self.name, self.partitions)
        self.producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": self.name, "linger.ms": 0})
        self.producer.init_transactions(30)

    @property
    def store(self) -> S3Store:
        """The bucket."""
        return self.engines.location.store()

    @property
    def chain(self) -> Chain:
        """The topic's manifests."""
        return Chain(self.store, self.name, self.name)

    def transaction(self, counts: Mapping[int, int], commit: bool = True, values: Iterable[bytes | None] = ()) -> None:
        """Produce `counts` records to each partition and `values` to partition 0, and end the transaction."""
        self.end(self.open_transaction(counts, values), commit)

    def end(self, written: list[Record], commit: bool = True) -> None:
        """End the open transaction, and wait until its end is visible.

        The broker answers before it has written the markers, so an immediate reader would not see the end.
        """
        if commit:
            self.producer.commit_transaction(30)
            self.committed.update(written)
        else:
            self.producer.abort_transaction(30)
        until(
            lambda: self.engines.kafka.end_offsets(self.name),
            lambda ends: all(ends[partition] > newest + 1 for partition, newest in self.newest.items()),
            seconds=30,
            what=f"the end of a transaction to be visible in topic {self.name}",
            pause_seconds=0.02,
        )

    def open_transaction(self, counts: Mapping[int, int], values: Iterable[bytes | None] = ()) -> list[Record]:
        """Produce `counts` records to each partition, then `values` to partition 0; the transaction stays open."""
        written: list[Record] = []

        def keep(error: object, message: Message) -> None:
            note(error, message)
            written.append((_int(message.partition()), _int(message.offset()), message.value() or b""))

        def note(error: object, message: Message) -> None:
            assert error is None, error
            partition, offset = _int(message.partition()), _int(message.offset())
            self.newest[partition] = max(offset, self.newest.get(partition, 0))

        self.producer.begin_transaction()
        for partition, count in counts.items():
            for _ in range(count):
                self.serial += 1
                value = b'{"serial": %d}' % self.serial
                self.producer.produce(self.name, value=value, partition=partition, on_delivery=keep)
        for odd in values:
            self.producer.produce(self.name, value=odd, partition=0, on_delivery=note)
        assert self.producer.flush(30) == 0
        return written

    def spec(self, **changes: int) -> LandSpec:
        """Return the specification of a run up to the broker's current end offsets, as the raw asset creates it."""
        kafka = self.engines.kafka
        head = self.chain.length()
        found = kafka.topic(self.name)
        assert found is not None
        spec = LandSpec(
            location=self.engines.location,
            pipeline=self.name,
            topic=self.name,
            topic_id=found.topic_id,
            begins=kafka.begin_offsets(self.name),
            ends=kafka.end_offsets(self.name),
            chain="",
            head=head,
            kafka={"bootstrap.servers": kafka.bootstrap},
            client=KafkaClient(kafka.bootstrap),
        )
        return replace(spec, **changes)  # type: ignore[arg-type]  # the sizes of objects

    def land(self, spec: LandSpec | None = None) -> LandReport:
        """Land the records that are not landed yet."""
        return land.run(self.engines.spark, spec or self.spec())

    def manifests(self) -> list[Manifest]:
        """Return all manifests of the chain."""
        return list(self.chain.since(0))

    def landed(self) -> list[Record]:
        """Return all landed records, read as their manifests describe them."""
        return [
            (item.partition, *record)
            for manifest in self.manifests()
            for item in manifest.objects
            for record in raw_objects.records(self.store, item)
        ]

    def close(self) -> None:
        """End an open transaction, and remove the topic."""
        with suppress(Exception):
            self.producer.abort_transaction(10)
        self.engines.kafka.delete_topic(self.name)


def _int(number: int | None) -> int:
    assert number is not None
    return number
