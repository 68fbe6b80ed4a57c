"""Migrate a lake table to the newest version of its source's schema, in a separate commit.

A change of columns at the source emits no events; the new values of stored rows are computed from the change. If a
stored value or its type changes (a column was added with a default, widened or renamed), one commit replaces all files,
so that no reader finds two types of one column. If only columns without a default were added, the commit has no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.evolution import describe_changes, match_columns
from cdc_lake.contract.schema.value_rules import STRICT
from cdc_lake.jobs.apply.debezium_types import parse_value


@dataclass(frozen=True)
class Migration:
    """The step from the schema version that last wrote a table to the newest version."""

    old: TableSchema
    new: TableSchema

    @property
    def needed(self) -> bool:
        """Whether the table must be written."""
        return dict(self.old.lake_columns()) != dict(self.new.lake_columns()) or self.rewrites

    @property
    def rewrites(self) -> bool:
        """Whether values or types of stored rows change."""
        before = dict(self.old.lake_columns())
        same = all(before.get(name, kind) == kind for name, kind in self.new.lake_columns())
        return not same or any(_is_rewritten(was, column) for column, was in self._columns())

    def describe(self) -> list[str]:
        """Describe the changes, one phrase for each column."""
        return describe_changes(self.old, self.new)

    def rows(self, stored: DataFrame) -> DataFrame:
        """Return the table's rows in the new version."""
        values = {column.name.lower(): _migrated_value(was, column) for column, was in self._columns()}
        before = dict(self.old.lake_columns())
        names = self.new.lake_columns()
        kept = {
            name: F.col(name).cast(kind) if name in before else F.lit(None).cast(kind)
            for name, kind in names
            if name not in values
        }
        return stored.select(*({**kept, **values}[name].alias(name) for name, _ in names))

    def _columns(self) -> Sequence[tuple[Column, Column | None]]:
        before = match_columns(self.old, self.new)
        return [(column, before.get(column.name)) for column in self.new.columns]


def migration(versions: Sequence[TableSchema], applied: int | None) -> Migration | None:
    """Return the migration from version `applied` to the newest one; None if no migration is needed."""
    old = next((version for version in versions if version.version == applied), None)
    if old is None or old.version == versions[-1].version:
        return None
    found = Migration(old, versions[-1])
    return found if found.needed else None


def _is_rewritten(was: Column | None, column: Column) -> bool:
    return column.missing is not None if was is None else was.name.lower() != column.name.lower()


def _migrated_value(was: Column | None, column: Column) -> SparkColumn:
    """Return a column's value in a stored row after the migration."""
    return missing_value(column) if was is None else F.col(was.name.lower()).cast(column.lake_type)


def missing_value(column: Column) -> SparkColumn:
    """Return the value of a column in rows that are older than the column."""
    if column.missing is None:
        return F.lit(None).cast(column.lake_type)
    return parse_value(column, F.lit(column.missing), STRICT).value
