"""What a query gives, and the checks it must pass before anything is drawn from it.

Here: the shape of a result, and its agreement with the declared columns.
Not here: how values are written (formats.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cdc_lake.dashboard.errors import DashboardError
from cdc_lake.dashboard.formats import Format, readable

Record = Mapping[str, object]


class QueryResult(Protocol):
    """A finished query: column names, and rows of as many values, in the query's order."""

    @property
    def columns(self) -> Sequence[str]: ...

    @property
    def rows(self) -> Sequence[Sequence[object]]: ...


Query = Callable[[str], QueryResult]
"""Runs one SELECT in the dashboard's database."""


@dataclass(frozen=True)
class Rows:
    """A query result held in memory."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...] = ()


class QueryOnce:
    """Runs each SQL text once, so that figures that share a query also share its result."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._results: dict[str, QueryResult] = {}

    def __call__(self, sql: str) -> QueryResult:
        if sql not in self._results:
            self._results[sql] = self._query(sql)
        return self._results[sql]


def fetch(query: Query, sql: str, formats: Mapping[str, Format], what: str) -> tuple[Record, ...]:
    """The rows of `sql` as records of exactly the columns in `formats`.

    `what` names the part of the declaration in errors. Raises DashboardError when columns are missing or
    undeclared, and when a value can't be written in its column's format.
    """
    result = query(sql)
    given, declared = list(result.columns), list(formats)
    if missing := [name for name in declared if name not in given]:
        raise DashboardError(f"{what}: the query does not return {', '.join(missing)}; it returns {', '.join(given)}")
    if extra := [name for name in given if name not in formats]:
        raise DashboardError(
            f"{what}: the query returns {', '.join(extra)}, which the dashboard does not declare; "
            f"declare it, or leave it out of the SELECT. Declared: {', '.join(declared)}"
        )
    records = tuple(dict(zip(given, row, strict=True)) for row in result.rows)
    for number, record in enumerate(records, start=1):
        for name, fmt in formats.items():
            _check_value(record[name], fmt, f"{what}: row {number}, column {name}")
    return records


def fetch_one(query: Query, sql: str, formats: Mapping[str, Format], what: str) -> Record:
    """The only row of `sql`; all None when there is none. Raises DashboardError when there are more."""
    records = fetch(query, sql, formats, what)
    if len(records) > 1:
        raise DashboardError(f"{what}: the query returns {len(records)} rows; figures are made from one row")
    return records[0] if records else dict.fromkeys(formats)


def _check_value(value: object, fmt: Format, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise DashboardError(f"{where}: {value} can't be shown; guard the division in the SQL with nullif(…, 0)")
    try:
        readable(value, fmt, "")
    except TypeError as error:
        raise DashboardError(f"{where}: {error}; cast it in the SQL or declare another format") from error
