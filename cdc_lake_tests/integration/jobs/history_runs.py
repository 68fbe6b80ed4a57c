"""Histories applied to one table, each in its own key range, so that one write of seconds covers hundreds of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.source.epochs import Epoch, Epochs, Start
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake_tests.helpers.source_changes.delivery_orders import Delivery
from cdc_lake_tests.helpers.source_changes.histories import content, fold
from cdc_lake_tests.helpers.source_changes.source_simulator import KEYS, Event
from cdc_lake_tests.integration.jobs.hudi_table import TOPIC, LakeTable

Content = Mapping[int, tuple[object, ...]]


class Landed(NamedTuple):
    """A landed manifest: its epoch, its index within the epoch, and its number of records."""

    epoch: int
    place: int
    records: int


@dataclass
class HistoryRun:
    """A table that receives many histories; `events` are the events landed so far, by history.

    `watermark` is written to every manifest. A test sets `swept` or `purged` after it has swept or purged the table:
    rows that are not in the last snapshot are then deleted, and tombstones may be removed.
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
        """Land the histories batch by batch: the next batches of all histories are one manifest."""
        for epoch in range(1 + max(event.epoch for delivery in self.deliveries for event in delivery.events())):
            if epoch:
                open_epoch(self.table, epoch)
            batches = [delivery.of_epoch(epoch) for delivery in self.deliveries]
            for place in range(max(map(len, batches))):
                records: list[dict[str, Any]] = []
                for number, each in enumerate(batches):
                    events = each[place] if place < len(each) else ()
                    self.events[number].extend(events)
                    records.extend(event.record(shift=number * KEYS) for event in events)
                self.table.deliver(records, epoch, self.watermark)
                yield Landed(epoch, place, len(records))

    def differences(self, rows: Sequence[Mapping[str, object]]) -> list[str]:
        """Describe the histories whose expected content differs from the rows, or whose keys are duplicated."""
        found: dict[int, dict[int, tuple[object, ...]]] = {number: {} for number in range(len(self.deliveries))}
        duplicated = []
        for row in rows:
            number, key = divmod(int(str(row["id"])), KEYS)
            if key in found[number]:
                duplicated.append(f"history {number}: key {key} is duplicated")
            found[number][key] = (row["note"], row["qty"], row["__deleted"])
        return duplicated + [
            f"history {number}: the table has {found[number]}, the fold {expected}"
            for number in range(len(self.deliveries))
            if self._shown(found[number]) != self._shown(expected := self._expected(number))
        ]

    def _expected(self, number: int) -> Content:
        """Return the expected content of a history by key."""
        taken = self.deliveries[number].taken if self.swept else 0
        newest = fold(self.events[number])
        return {
            key: content(event) if event.committed[0] >= taken else (event.note, event.qty, True)
            for key, event in newest.items()
        }

    def _shown(self, rows: Content) -> Content:
        return {key: row for key, row in rows.items() if not (self.purged and row[2])}


def open_epoch(table: LakeTable, number: int) -> None:
    """Begin an epoch at the end of the table's manifest chain, as `cdc-lake resnapshot` does."""
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
