"""A topic of one test, written by transactions, and what landing it should give.

Here: producing, and reading back what was landed. Not here: what the tests compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from confluent_kafka import Message, Producer

from cdc_lake.contract import json_lines
from cdc_lake.contract.chain import Chain
from cdc_lake.contract.manifest import Manifest
from cdc_lake.contract.store import S3Store
from cdc_lake.jobs import land
from cdc_lake.jobs.land import LandReport, LandSpec
from cdc_lake_tests.integration.jobs.engines import Engines

Record = tuple[int, int, bytes]
"""Partition, offset, value."""


@dataclass
class Topic:
    """A topic in a pipeline of its own; `committed` are the records of committed transactions, by place."""

    engines: Engines
    name: str
    partitions: int = 1
    committed: set[Record] = field(default_factory=set)
    producer: Producer = field(init=False)
    serial: int = 0

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
        """Produce so many records to each partition, and end the transaction."""
        written = self.open_transaction(counts, values)
        if commit:
            self.producer.commit_transaction(30)
            self.committed.update(written)
        else:
            self.producer.abort_transaction(30)

    def open_transaction(self, counts: Mapping[int, int], values: Iterable[bytes | None] = ()) -> list[Record]:
        """Produce so many records to each partition, then `values` to partition 0; the transaction stays open."""
        written: list[Record] = []

        def keep(error: object, message: Message) -> None:
            assert error is None, error
            written.append((_int(message.partition()), _int(message.offset()), message.value() or b""))

        self.producer.begin_transaction()
        for partition, count in counts.items():
            for _ in range(count):
                self.serial += 1
                value = b'{"serial": %d}' % self.serial
                self.producer.produce(self.name, value=value, partition=partition, on_delivery=keep)
        for odd in values:
            self.producer.produce(self.name, value=odd, partition=0)
        assert self.producer.flush(30) == 0
        return written

    def spec(self, **changes: int) -> LandSpec:
        """A run from what the broker says now, as the raw asset makes it."""
        kafka = self.engines.kafka
        found = kafka.topic(self.name)
        assert found is not None
        spec = LandSpec(
            location=self.engines.location,
            pipeline=self.name,
            topic=self.name,
            topic_id=found.topic_id,
            begins=kafka.begin_offsets(self.name),
            ends=kafka.end_offsets(self.name),
            kafka={"bootstrap.servers": kafka.bootstrap},
        )
        return replace(spec, **changes)  # type: ignore[arg-type]  # the sizes of objects

    def land(self, spec: LandSpec | None = None) -> LandReport:
        """Land what is new."""
        return land.run(self.engines.spark, spec or self.spec())

    def manifests(self) -> list[Manifest]:
        """The whole chain, checked."""
        return list(self.chain.since(0))

    def landed(self) -> list[Record]:
        """All landed records, verified against their manifests."""
        return [
            (item.partition, *record)
            for manifest in self.manifests()
            for item in manifest.objects
            for record in json_lines.records(self.store, item)
        ]

    def close(self) -> None:
        """End an open transaction, and remove the topic."""
        with suppress(Exception):
            self.producer.abort_transaction(10)
        self.engines.kafka.delete_topic(self.name)


def _int(number: int | None) -> int:
    assert number is not None
    return number
