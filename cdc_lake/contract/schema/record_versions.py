"""Map each lake column to the fields of a record that contain its value, for each range of epochs.

The names of a record's fields show which columns its table had. Between two resnapshots, a name belongs to one column
only (evolution.py ensures that), so records of all versions in between can be read: each field belongs to a known
column, and the columns that all versions share are present. A column that is not in a record was added later; its value
is the one that PostgreSQL returns for rows older than the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, Column, TableSchema
from cdc_lake.contract.schema.evolution import match_columns


@dataclass(frozen=True)
class LakeColumn:
    """One column of the lake, and the fields that contain its value.

    `fields` are the source's columns under each of their names, newest first; a record has at most one of these fields,
    and exactly one if `required`.
    """

    name: str
    lake_type: str
    fields: tuple[Column, ...]
    missing: Column | None
    """The column whose `missing` is the value for older records; None means NULL."""
    required: bool

    @property
    def certain(self) -> bool:
        """Whether all records of the epochs have the column's only field."""
        return self.required and len(self.fields) == 1


@dataclass(frozen=True)
class RecordLayout:
    """How to read the records of the epochs [first, end)."""

    first: int
    end: int | None
    columns: tuple[LakeColumn, ...]
    omitted: frozenset[str] = frozenset()
    """Fields that are ignored: the connector sends an omitted column until it has the new configuration."""
    whole_deletes: bool = True
    """Whether a delete contains the whole last row, not only its key."""

    def known_fields(self) -> set[str]:
        """Return all fields that a record may have."""
        return {*(field.name for column in self.columns for field in column.fields), *self.omitted, *EVENT_FIELDS}

    def covers(self, epoch: int) -> bool:
        """Return whether this layout applies to records of the epoch."""
        return self.first <= epoch and (self.end is None or epoch < self.end)


def record_layouts(versions: Sequence[TableSchema], epochs: Iterable[int] | None = None) -> list[RecordLayout]:
    """Return a layout for each range of epochs between resnapshots, limited to those of `epochs` if given."""
    firsts = sorted({version.epoch for version in versions})
    found = []
    for index, first in enumerate(firsts):
        # Epochs before the first known one have its layout.
        start, end = (0 if index == 0 else first), (firsts[index + 1] if index + 1 < len(firsts) else None)
        same_epoch = [version for version in versions if version.epoch == first]
        omitted = frozenset(column.name for version in same_epoch for column in version.omitted)
        whole = all(version.allows_full_replica_identity for version in same_epoch)
        found.append(RecordLayout(start, end, tuple(_columns(same_epoch, versions[-1])), omitted, whole))
    wanted = None if epochs is None else set(epochs)
    return [each for each in found if wanted is None or any(each.covers(epoch) for epoch in wanted)]


def _columns(same_epoch: Sequence[TableSchema], newest: TableSchema) -> Iterable[LakeColumn]:
    last = same_epoch[-1]
    before = {column.name: column for column in newest.columns} if last == newest else match_columns(last, newest)
    used_fields = set()
    for column in newest.columns:
        was = before.get(column.name)
        named = () if was is None else _under_each_name(same_epoch, was)
        used_fields |= {each.name for each in named}
        yield LakeColumn(
            name=column.name.lower(),
            lake_type=column.lake_type,
            fields=named,
            missing=None if column.missing is None else column,
            required=was is not None and all(_has_column(version, was) for version in same_epoch),
        )
    for column in newest.dropped:
        was = next(
            (each for each in _columns_newest_first(same_epoch) if each.name.lower() == column.name.lower()), None
        )
        named = () if was is None or was.name in used_fields else _under_each_name(same_epoch, was)
        yield LakeColumn(
            name=column.name.lower(), lake_type=column.lake_type, fields=named, missing=None, required=False
        )


def _columns_newest_first(same_epoch: Sequence[TableSchema]) -> Iterable[Column]:
    return (column for version in reversed(same_epoch) for column in version.columns)


def _same(one: Column, other: Column) -> bool:
    if None in {one.attnum, other.attnum}:
        return one.name == other.name
    return one.attnum == other.attnum


def _has_column(version: TableSchema, column: Column) -> bool:
    return any(_same(each, column) for each in version.columns)


def _under_each_name(same_epoch: Sequence[TableSchema], column: Column) -> tuple[Column, ...]:
    """Return the column under each of its names, with its newest type."""
    names = dict.fromkeys(each.name for each in _columns_newest_first(same_epoch) if _same(each, column))
    return tuple(column.model_copy(update={"name": name}) for name in names)
