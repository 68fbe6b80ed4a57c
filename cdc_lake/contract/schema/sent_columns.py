"""The columns of a polled table's records in Kafka, which landing changes by the transforms with `at: landing`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.transforms import TableTransforms


@dataclass(frozen=True)
class SentColumn:
    """A column as records in Kafka have it, and as the captured schema has it."""

    sent: Column
    lake: Column


def sent_columns(columns: Sequence[Column], changes: TableTransforms | None) -> Iterator[SentColumn]:
    """Yield the columns that landing does not insert, with their names and types before landing changes them."""
    made = changes or TableTransforms()
    for column in columns:
        if column.inserted is not None and column.name in made.inserted:
            continue
        updates: dict[str, object] = {}
        if column.source_name in made.renamed:
            updates |= {"name": column.source_name, "source": None}
        if updates.get("name", column.name) in made.cast:
            updates |= {"type": column.uncast, "uncast": None}
        yield SentColumn(column.model_copy(update=updates), column)
