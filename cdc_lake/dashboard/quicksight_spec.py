"""What a dashboard's YAML may say of its counterpart in QuickSight.

Here: the rows that are read there, computed columns, and which of them each visual shows. Titles, labels and formats
are the page's visuals' own. Not here: the page (spec.py), QuickSight's structures (resources/quicksight_*.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from cdc_lake.dashboard.fields import Name, Sql, Strict, Text

_NAMED = re.compile(r"{([^{}]*)}")


class ColumnKind(StrEnum):
    """QuickSight's types of columns."""

    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DATETIME = "datetime"


class Aggregate(StrEnum):
    """What is made of a column's values within a category."""

    SUM = "sum"
    AVERAGE = "average"
    MIN = "min"
    MAX = "max"
    COUNT = "count"
    DISTINCT_COUNT = "distinct_count"

    @property
    def numeric(self) -> bool:
        """Whether it takes numbers."""
        return self not in (Aggregate.COUNT, Aggregate.DISTINCT_COUNT)


class Measure(Strict):
    """A number for each category."""

    column: Name = Field(description="the column")
    aggregate: Aggregate = Field(description="what is made of its values")


class PieWells(Strict):
    """Slices, for a visual that is bars on the page; as many as the page shows at first, the rest as one."""

    kind: Literal["pie"] = Field(description="pie or scatter")
    by: Name = Field(description="the column that names a slice")
    value: Measure = Field(description="a slice's size")

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Each number with its place."""
        yield "value", self.value


class ScatterWells(Strict):
    """Dots, for a visual that is dots on the page."""

    kind: Literal["scatter"] = Field(description="pie or scatter")
    by: Name = Field(description="the column that names a dot")
    x: Measure = Field(description="the number across")
    y: Measure = Field(description="the number upwards")
    size: Measure = Field(description="the number that is a dot's area")

    def measures(self) -> Iterator[tuple[str, Measure]]:
        """Each number with its place."""
        yield from (("x", self.x), ("y", self.y), ("size", self.size))


class QuickSightVisual(Strict):
    """One of the page's visuals as QuickSight draws it."""

    visual: Name = Field(description="the page's visual")
    chart: PieWells | ScatterWells = Field(discriminator="kind", description="what it shows")


class QuickSightSpec(Strict):
    """The counterpart of the page in QuickSight."""

    sql: Sql = Field(description="a SELECT of the rows, or the .sql file that holds it")
    columns: dict[Name, ColumnKind] = Field(min_length=1, description="the query's columns with their types")
    calculated: dict[Name, Text] = Field(
        default_factory=dict, description="numbers computed by QuickSight; columns in braces"
    )
    visuals: tuple[QuickSightVisual, ...] = Field(min_length=1, description="the charts")

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        known: dict[str, bool] = {name: kind in ("integer", "decimal") for name, kind in self.columns.items()}
        for name, expression in self.calculated.items():
            if name in known:
                raise ValueError(f"calculated.{name} is a column already; allowed: each name once")
            for used in _NAMED.findall(expression):
                if used not in known:
                    raise ValueError(f"calculated.{name} names '{used}'; allowed: {', '.join(known)}")
            known[name] = True
        for number, visual in enumerate(self.visuals):
            place = f"visuals[{number}].chart"
            if visual.chart.by not in known:
                raise ValueError(f"{place}.by names '{visual.chart.by}'; allowed: {', '.join(known)}")
            for field, measure in visual.chart.measures():
                if measure.column not in known:
                    raise ValueError(f"{place}.{field} names '{measure.column}'; allowed: {', '.join(known)}")
                if measure.aggregate.numeric and not known[measure.column]:
                    numbers = ", ".join(name for name, numeric in known.items() if numeric)
                    raise ValueError(f"{place}.{field}: {measure.aggregate} takes a number; allowed: {numbers}")
        return self
