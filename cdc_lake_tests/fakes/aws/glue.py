"""A fake of the Glue catalog in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import PrivateAttr

from cdc_lake_tests.fakes.steps import Noting, Steps
from resources.glue.catalog import GlueCatalog, TableDefinition
from resources.glue.tables import partition_values


class FakeGlue(Noting, GlueCatalog):
    _tables: dict[str, TableDefinition] = PrivateAttr(default_factory=dict)
    _partitions: dict[str, set[str]] = PrivateAttr(default_factory=dict)
    _views: dict[str, str] = PrivateAttr(default_factory=dict)
    _steps: Steps = PrivateAttr(default_factory=Steps)

    def ensure_database(self, name: str, location: str | None = None) -> bool:  # noqa: ARG002 - all are there
        """See GlueCatalog."""
        return False

    def get_table(self, database: str, name: str) -> TableDefinition | None:
        """See GlueCatalog."""
        return self._tables.get(f"{database}.{name}")

    def table_names(self, database: str) -> list[str]:
        """See GlueCatalog."""
        return sorted(each.name for each in self._tables.values() if each.database == database)

    def view_sql(self, database: str, name: str) -> str | None:
        """See GlueCatalog."""
        return self._views.get(f"{database}.{name}")

    def put_view(self, definition: TableDefinition, sql: str) -> None:
        """Create or replace a view, as Athena does."""
        self._tables[definition.full_name] = definition
        self._views[definition.full_name] = sql

    def put_table(self, definition: TableDefinition) -> bool:
        """See GlueCatalog."""
        changed = self._tables.get(definition.full_name) != definition
        self._tables[definition.full_name] = definition
        return changed

    def put_partitions(
        self,
        definition: TableDefinition,
        folders: Iterable[str] | Mapping[str, str],
        *,
        update: bool = False,  # noqa: ARG002 - partitions have no columns
    ) -> int:
        """See GlueCatalog."""
        present = self._partitions.setdefault(definition.full_name, set())
        missing = set(folders) - present
        present |= missing
        return len(missing)

    def partitions(self, database: str, name: str) -> set[tuple[str, ...]]:
        """See GlueCatalog."""
        return {tuple(partition_values(folder)) for folder in self._partitions.get(f"{database}.{name}", ())}

    def delete_table(self, database: str, name: str) -> bool:
        """See GlueCatalog."""
        if f"{database}.{name}" not in self._tables:
            return False
        self._steps.take(f"catalog {database}.{name}")
        del self._tables[f"{database}.{name}"]
        return True
