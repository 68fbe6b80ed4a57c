"""A fake of Athena: SQLite runs its queries (cdc_lake_tests/fakes/sql.py), and the fake catalog records its views."""

from __future__ import annotations

from pydantic import PrivateAttr

from cdc_lake_tests.fakes.aws.glue import FakeGlue
from cdc_lake_tests.fakes.sql import Sql
from resources.athena import Athena, QueryResult
from resources.glue.catalog import TableDefinition


class FakeAthena(Athena):
    """Athena over SQLite's tables; the views it creates appear in `glue`."""

    _sql: Sql = PrivateAttr(default_factory=lambda: Sql("trino"))
    _types: dict[str, str] = PrivateAttr(default_factory=dict)
    _glue: FakeGlue | None = PrivateAttr(default=None)
    _databases: set[str] = PrivateAttr(default_factory=set)

    def with_catalog(self, glue: FakeGlue) -> FakeAthena:
        """Record views in this catalog. Return self."""
        self._glue = glue
        return self

    @property
    def sql(self) -> Sql:
        """Return the SQLite database that holds the lake's tables and runs the queries."""
        return self._sql

    @property
    def types(self) -> dict[str, str]:
        """Return the column types by name; a column without an entry is varchar."""
        return self._types

    @property
    def databases(self) -> set[str]:
        """Return the databases in which queries ran."""
        return self._databases

    def query(self, sql: str) -> QueryResult:  # type: ignore[override]  # without reuse of results
        """See Athena."""
        self._databases.add(self.database)
        names, rows = self._sql.run(sql)
        columns = tuple((name, self._types.get(name, "varchar")) for name in names)
        return QueryResult(columns, tuple(rows), "query-1", 0, 0.0)

    def execute(self, sql: str) -> QueryResult:
        """See Athena."""
        result = self.query(sql)
        if self._glue is not None and sql.startswith("CREATE OR REPLACE VIEW"):
            database, name = sql.split('"')[1], sql.split('"')[3]
            self._glue.put_table(TableDefinition(database, name, "", (), table_type="VIRTUAL_VIEW"))
        return result
