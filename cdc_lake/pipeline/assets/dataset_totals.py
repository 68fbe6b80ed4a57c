"""The totals of a dataset, queried through Athena: its number of rows, and the sum of each decimal and float column.

Integer columns are not summed: most are ids.
"""

import math
from collections.abc import Sequence
from decimal import Decimal

from resources.athena import Athena, QueryResult

_NUMERIC = ("decimal", "double", "real", "float")
_TOLERANCE = {"double": 1e-9, "real": 1e-4, "float": 1e-4}
"""The relative difference of two totals that counts as equal: a double has 15 digits, a real 6."""


def totals(athena: Athena, catalog: str, name: str, columns: Sequence[tuple[str, str]] | None = None) -> QueryResult:
    """Query the number of rows of a dataset and the sums of its columns: one row (`rows`, then the columns).

    `columns` are the names and types of the dataset's columns; None queries them.
    """
    known = column_types(athena, catalog, name) if columns is None else columns
    sums = ", ".join(f'sum("{column}") AS "{column}"' for column, kind in known if kind.startswith(_NUMERIC))
    return athena.query(f'SELECT count(*) AS "rows"{", " + sums if sums else ""} FROM "{catalog}"."{name}"')  # noqa: S608


def as_decimal(value: object) -> Decimal:
    """Return a total as a decimal; NULL, the sum of no rows, becomes 0."""
    return Decimal(str(value or 0))


def equal_totals(kind: str, one: Decimal, other: Decimal) -> bool:
    """Return whether two totals of a column of this type are equal; those of floats depend on the order of addition."""
    if one.is_nan() or other.is_nan():
        return one.is_nan() and other.is_nan()
    tolerance = next((value for name, value in _TOLERANCE.items() if kind.startswith(name)), None)
    return one == other if tolerance is None else math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def column_types(athena: Athena, catalog: str, name: str) -> list[tuple[str, str]]:
    """Return the names and types of a dataset's columns."""
    empty = athena.query(f'SELECT * FROM "{catalog}"."{name}" LIMIT 0')  # noqa: S608 - names are checked by the spec
    return [(column, kind) for column, kind in empty.columns]
