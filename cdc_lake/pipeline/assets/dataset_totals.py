"""The totals of a dataset: its number of rows and the sum of each numeric column, queried through Athena."""

from collections.abc import Sequence
from decimal import Decimal

from resources.athena import Athena, QueryResult

_NUMERIC = ("decimal", "double", "real", "float")


def totals(athena: Athena, catalog: str, name: str, columns: Sequence[tuple[str, str]] | None = None) -> QueryResult:
    """Query the number of rows of a dataset and the sum of each numeric column: one row (`rows`, then the columns).

    `columns` are the names and types of the dataset's columns; None queries them.
    """
    known = column_types(athena, catalog, name) if columns is None else columns
    sums = ", ".join(f'sum("{column}") AS "{column}"' for column, kind in known if kind.startswith(_NUMERIC))
    return athena.query(f'SELECT count(*) AS "rows"{", " + sums if sums else ""} FROM "{catalog}"."{name}"')  # noqa: S608


def as_decimal(value: object) -> Decimal:
    """Return a total as a decimal; NULL, the sum of no rows, becomes 0."""
    return Decimal(str(value or 0))


def column_types(athena: Athena, catalog: str, name: str) -> list[tuple[str, str]]:
    """Return the names and types of a dataset's columns."""
    empty = athena.query(f'SELECT * FROM "{catalog}"."{name}" LIMIT 0')  # noqa: S608 - names are checked by the spec
    return [(column, kind) for column, kind in empty.columns]
