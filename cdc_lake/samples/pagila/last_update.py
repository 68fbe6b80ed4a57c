"""The values of last_update: one for each table. In Pagila too, each table was filled in one transaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_TABLES = (
    "actor", "category", "country", "language", "city", "address", "film", "film_actor", "film_category", "inventory",
    "customer", "staff", "store",
)  # fmt: skip
_FIRST = datetime(2022, 2, 15, 9, 34, 33, tzinfo=UTC)


def last_update(table: str) -> datetime:
    """Return the last_update of the table's generated rows."""
    return _FIRST + timedelta(minutes=6 * _TABLES.index(table))
