"""A dashboard in words that are nobody's: the rows it is made of, and the visuals over them.

Here: dataclasses. Not here: how QuickSight spells them (quicksight_definition.py, quicksight_data.py), and where they
come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["STRING", "INTEGER", "DECIMAL", "DATETIME"]
Aggregate = Literal["SUM", "AVERAGE", "MIN", "MAX", "COUNT", "DISTINCT_COUNT"]


@dataclass(frozen=True)
class Column:
    """A column of the rows, or one computed from them."""

    name: str
    type: ColumnType
    expression: str | None = None
    """For a computed column: QuickSight's expression, other columns in braces."""


@dataclass(frozen=True)
class RowSet:
    """The rows that all visuals read."""

    sql: str
    """One SELECT in Athena's dialect, its tables with their database."""
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """The column of that name. Raises ValueError, with the names that there are."""
        for each in self.columns:
            if each.name == name:
                return each
        raise ValueError(f"there is no column {name}; there are {', '.join(each.name for each in self.columns)}")


@dataclass(frozen=True)
class NumberFormat:
    """How a number is written: with a sign before it, decimal places, as a percentage."""

    prefix: str = ""
    places: int = 0
    percent: bool = False


@dataclass(frozen=True)
class Category:
    """The column whose values are the slices or dots."""

    column: str
    label: str


@dataclass(frozen=True)
class Measure:
    """A number for each category."""

    column: str
    aggregate: Aggregate
    label: str
    format: NumberFormat = NumberFormat()


@dataclass(frozen=True)
class Pie:
    """Slices, the largest first; after `slices` of them the rest is one."""

    id: str
    title: str
    by: Category
    value: Measure
    slices: int = 20


@dataclass(frozen=True)
class Scatter:
    """One dot a category, its area by `size`."""

    id: str
    title: str
    by: Category
    x: Measure
    y: Measure
    size: Measure


@dataclass(frozen=True)
class Board:
    """A whole dashboard. Ids are letters, digits, `-` and `_`."""

    id: str
    title: str
    rows: RowSet
    visuals: tuple[Pie | Scatter, ...]
