"""Histories carried to one table: each in a key space of its own, so that a write of seconds tries hundreds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.source.epochs import Epoch, Epochs, Start
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake_tests.delivery_orders import Delivery
from cdc_lake_tests.histories import content, fold
from cdc_lake_tests.integration.jobs.hudi_table import TOPIC, LakeTable
from cdc_lake_tests.source_simulator import KEYS, Event

Content = Mapping[int, tuple[object, ...]]


class Landed(NamedTuple):
    """A manifest that was landed: its epoch, its place among those of the epoch, and its records."""

    epoch: int
    place: int
    records: int


@dataclass
class Told:
    """A table that is told many histories; `events` is what was landed of each so far.

    `watermark` goes into every manifest. `swept` and `purged` are set by who sweeps or purges the table: rows that the
    last snapshot left out are deleted then, and deleted rows may be gone.
    """

    table: LakeTable
    deliveries: Sequence[Delivery]
    watermark: Watermark | None = None
    swept: bool = False
    purged: bool = False
    events: list[list[Event]] = field(init=False)

    def __post_init__(self) -> None:
        self.events = [[] for _ in self.deliveries]

    def land(self) -> Iterator[Landed]:
        """Land the next batch of every history as one manifest, again and again."""
        for epoch in range(1 + max(event.epoch for delivery in self.deliveries for event in delivery.events())):
            if epoch:
                open_epoch(self.table, epoch)
            batches = [delivery.of_epoch(epoch) for delivery in self.deliveries]
            for place in range(max(map(len, batches))):
                records = []
                for number, each in enumerate(batches):
                    events = each[place] if place < len(each) else ()
                    self.events[number].extend(events)
                    records.extend(event.record(shift=number * KEYS) for event in events)
                self.table.deliver(records, epoch, self.watermark)
                yield Landed(epoch, place, len(records))

    def wrong(self, rows: Sequence[Mapping[str, object]]) -> list[str]:
        """The histories that the rows differ from, in words; a key that is there twice is one."""
        found: dict[int, dict[int, tuple[object, ...]]] = {number: {} for number in range(len(self.deliveries))}
        twice = []
        for row in rows:
            number, key = divmod(int(str(row["id"])), KEYS)
            if key in found[number]:
                twice.append(f"history {number}: key {key} is there twice")
            found[number][key] = (row["note"], row["qty"], row["__deleted"])
        return twice + [
            f"history {number}: the table has {found[number]}, the fold {expected}"
            for number in range(len(self.deliveries))
            if self._shown(found[number]) != self._shown(expected := self._expected(number))
        ]

    def _expected(self, number: int) -> Content:
        """What readers see of a history by key."""
        taken = self.deliveries[number].taken if self.swept else 0
        newest = fold(self.events[number])
        return {
            key: content(event) if event.committed[0] >= taken else (event.note, event.qty, True)
            for key, event in newest.items()
        }

    def _shown(self, rows: Content) -> Content:
        return {key: row for key, row in rows.items() if not (self.purged and row[2])}


def open_epoch(table: LakeTable, number: int) -> None:
    """Begin an epoch where the table's chain ends, as `cdc-lake resnapshot` does."""
    offset = table.next_offset
    Epochs(table.store, table.name).begin(
        Epoch(
            number=number,
            pipeline=table.name,
            reason="a test",
            attempt=f"epoch {number}",
            began_at=datetime.now(UTC),
            system_identifier="1",
            timeline=1,
            slot="slot",
            lsn=0,
            starts={TOPIC: Start(topic_id=table.topic_id, offsets={0: offset})},
        )
    )
    table.chain.append(
        Manifest(
            number=table.chain.length() + 1,
            attempt=f"epoch {number}",
            pipeline=table.name,
            topic=TOPIC,
            topic_id=table.topic_id,
            epoch=number,
            opens="a test",
            spans=(Span(partition=0, first=offset, next=offset),),
            objects=(),
            committed_at=datetime.now(UTC),
        )
    )
