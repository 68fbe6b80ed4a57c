"""Read tables and views of a pipeline's first target through Athena, for the demos' example changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from cdc_lake.demo.demo_run import DemoRun
from resources.athena import Athena


@dataclass(frozen=True)
class CatalogReader:
    """Reads from the database of the first target; a table of another database needs a qualified name."""

    athena: Athena
    demo: DemoRun

    @classmethod
    def of(cls, demo: DemoRun) -> Self:
        """Return the reader of a demo's pipeline."""
        return cls(demo.observer.athena.metered(demo.pipeline.catalog), demo)

    def hudi(self, table: str) -> str:
        """Return the qualified name of a table's view in the target `lake`."""
        found = self.demo.lake_table(table, "lake")
        return f"{found.database}.{found.view}"

    def values(self, columns: str, table: str, condition: str) -> list[Any]:
        """Return one column, or several as tuples, of the rows that meet a condition, sorted."""
        sql = f"SELECT {columns} FROM {table} WHERE {condition}"  # noqa: S608 - the names and ids are constants
        rows = self.athena.query(sql).rows
        return sorted(row[0] if len(row) == 1 else tuple(row) for row in rows)

    def count(self, table: str, condition: str) -> int:
        """Count the rows that meet a condition."""
        [found] = self.values("count(*)", table, condition)
        return int(found)
