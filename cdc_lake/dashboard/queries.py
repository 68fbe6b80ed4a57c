"""Run a dashboard's queries, compare the results with the declared columns, and fingerprint what a page depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from cdc_lake.dashboard.formats import readable
from cdc_lake.dashboard.spec import DashboardError, DashboardSpec, QuerySpec

Record = Mapping[str, object]


@dataclass(frozen=True)
class Rows:
    """A query result: column names, and rows with one value for each column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...] = ()


Query = Callable[[str], Rows]
"""Runs one SELECT in the dashboard's database. Several threads can call it."""
MAX_QUERIES = 4


def fetch(query: Query, declared: QuerySpec, what: str) -> list[Record]:
    """Return the rows of a query as records with exactly the declared columns.

    `what` names the part of the YAML in errors. Raises DashboardError if a column is missing or not declared, or if a
    value cannot be written in its column's format.
    """
    result = query(declared.sql)
    columns = result.columns
    if missing := [name for name in declared.columns if name not in columns]:
        raise DashboardError(
            f"Cannot render {what}: the query does not return {', '.join(missing)}; it returns {', '.join(columns)}. "
            "Correct the SQL or the declared columns."
        )
    if extra := [name for name in columns if name not in declared.columns]:
        raise DashboardError(
            f"Cannot render {what}: the query returns {', '.join(extra)}, which the YAML does not declare. Declare it, "
            f"or remove it from the SELECT. Declared: {', '.join(declared.columns)}."
        )
    records: list[Record] = [dict(zip(columns, row, strict=True)) for row in result.rows]
    for number, record in enumerate(records, start=1):
        for name, column in declared.columns.items():
            try:
                readable(record[name], column.format, "")
            except ValueError as error:
                raise DashboardError(f"Cannot render {what}: row {number}, column {name}: {error}") from error
    return records


def fetch_one(query: Query, declared: QuerySpec | None, what: str) -> Record:
    """Return the only row of a query; None in each column for an empty result, and an empty record without a query.

    Raises DashboardError for more than one row, and as `fetch` does.
    """
    if declared is None:
        return {}
    records = fetch(query, declared, what)
    if len(records) > 1:
        raise DashboardError(
            f"Cannot render {what}: the query returns {len(records)} rows, and exactly one is needed. Aggregate in the "
            "SQL."
        )
    return records[0] if records else dict.fromkeys(declared.columns)


def texts(declared: QuerySpec | None, record: Record, currency: str) -> dict[str, str]:
    """Return the formatted values of a record."""
    columns = declared.columns if declared else {}
    return {name: readable(record[name], column.format, currency) for name, column in columns.items()}


def fingerprint(spec: DashboardSpec, query: Query) -> str:
    """Return a SHA-256 of everything the page depends on except the time: YAML, results, this package, libraries.

    Runs up to four queries at the same time, because most of a query's time is waiting.
    """
    digest = hashlib.sha256(spec.model_dump_json(exclude={"quicksight"}).encode())
    statements = sorted({sql for _, sql in spec.queries()})
    with ThreadPoolExecutor(MAX_QUERIES) as pool:
        for sql, result in zip(statements, pool.map(query, statements), strict=True):
            digest.update(repr((sql, result.columns, result.rows)).encode())
    digest.update(f"vl-convert-python {version('vl-convert-python')}".encode())
    for file in sorted(path for path in Path(__file__).parent.rglob("*") if path.suffix not in ("", ".pyc")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
