"""What a dashboard's YAML may say.

Here: the fields, their meaning and the rules between them. Names of columns and figures are lower case,
as Athena returns them.
Not here: the chart kinds (chart_spec.py), the counterpart in QuickSight (quicksight_spec.py), reading the file and
wording its errors (load.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from cdc_lake.dashboard.chart_spec import BarChart, ScatterChart
from cdc_lake.dashboard.fields import Name, Sql, Strict, Template, Text
from cdc_lake.dashboard.formats import Format
from cdc_lake.dashboard.message import placeholders
from cdc_lake.dashboard.quicksight_spec import QuickSightSpec
from cdc_lake.dashboard.sql import check_select


class Headline(Strict):
    """A figure at the head of the page. Headlines with the same SQL share one query."""

    name: Name = Field(description="what messages call the figure")
    label: Text = Field(description="what the page calls it")
    sql: Sql = Field(description="a SELECT of one row, or the .sql file that holds it")
    column: Name = Field(description="the column of that row")
    format: Format = Field(description="how the figure is written")


class Column(Strict):
    """A column of a visual's query."""

    label: Text = Field(description="its heading in tables and tooltips")
    format: Format = Field(description="how its values are written")


class Figures(Strict):
    """Figures for a visual's sentences, from a query of one row."""

    sql: Sql = Field(description="a SELECT of one row, or the .sql file that holds it")
    formats: dict[Name, Format] = Field(min_length=1, description="each column of that row with its format")


class Visual(Strict):
    """One chart with the sentence that says what it shows."""

    name: Name = Field(description="its name in previews and row counts")
    title: Text = Field(description="its heading")
    message: Template = Field(description="what to see in it; figures in braces")
    sql: Sql = Field(description="a SELECT of a row a mark, or the .sql file that holds it")
    columns: dict[Name, Column] = Field(min_length=1, description="the query's columns")
    chart: BarChart | ScatterChart = Field(discriminator="kind", description="how the rows are drawn")
    figures: Figures | None = Field(None, description="figures for the message and notes")

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        for place, name, numeric in self.chart.references():
            if name not in self.columns:
                raise ValueError(f"chart.{place} names '{name}'; allowed: {', '.join(self.columns)}")
            if numeric and not self.columns[name].format.numeric:
                allowed = ", ".join(f for f in Format if f.numeric)
                raise ValueError(f"chart.{place} needs a number, and '{name}' has another format; allowed: {allowed}")
        return self

    def templates(self) -> Iterator[tuple[str, str]]:
        """Each sentence with the field it stands in."""
        yield "message", self.message
        if isinstance(self.chart, BarChart) and self.chart.running:
            yield "chart.running.note", self.chart.running.note


class DashboardSpec(Strict):
    """A whole dashboard."""

    title: Text = Field(description="the page's heading")
    subtitle: Text = Field(description="a sentence below it")
    database: Name = Field(description="the Athena database")
    dataset: Name = Field(description="the table or view all its SQL reads")
    currency: Text = Field("$", description="the sign before amounts of money")
    headlines: tuple[Headline, ...] = Field((), description="figures at the head of the page")
    visuals: tuple[Visual, ...] = Field(min_length=1, description="the charts")
    quicksight: QuickSightSpec | None = Field(None, description="the same as a dashboard in QuickSight, on AWS")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _check_unique("visuals", [visual.name for visual in self.visuals])
        common = [headline.name for headline in self.headlines]
        own = [list(visual.figures.formats) if visual.figures else [] for visual in self.visuals]
        _check_unique("figures", common + [name for names in own for name in names])
        for number, (visual, names) in enumerate(zip(self.visuals, own, strict=True)):
            for field, template in visual.templates():
                for name in placeholders(template):
                    if name not in (*common, *names):
                        known = ", ".join((*common, *names)) or "none is declared"
                        raise ValueError(f"visuals[{number}].{field} names the figure '{name}'; allowed: {known}")
        return self

    @model_validator(mode="after")
    def _check_quicksight(self) -> Self:
        drawn = {visual.name: visual.chart.kind for visual in self.visuals}
        for number, each in enumerate(self.quicksight.visuals if self.quicksight else ()):
            place, needed = f"quicksight.visuals[{number}]", "bar" if each.chart.kind == "pie" else each.chart.kind
            if each.visual not in drawn:
                raise ValueError(f"{place}.visual names '{each.visual}'; allowed: {', '.join(drawn)}")
            if drawn[each.visual] != needed:
                raise ValueError(
                    f"{place}.chart.kind: '{each.chart.kind}' is for a visual that is a {needed} on the page, and"
                    f" '{each.visual}' is a {drawn[each.visual]}; allowed: {'pie' if needed != 'bar' else 'scatter'}"
                )
        if self.quicksight:
            _check_unique("quicksight.visuals", [each.visual for each in self.quicksight.visuals])
        return self

    @model_validator(mode="after")
    def _check_sql(self) -> Self:
        own = [("quicksight.sql", self.quicksight.sql)] if self.quicksight else []
        for field, sql in (*self.queries(), *own):
            try:
                check_select(sql, self.database, self.dataset)
            except ValueError as error:
                raise ValueError(f"{field}: {error}") from error
        return self

    def queries(self) -> Iterator[tuple[str, str]]:
        """Each SQL text of the page with the field it stands in."""
        for number, headline in enumerate(self.headlines):
            yield f"headlines[{number}].sql", headline.sql
        for number, visual in enumerate(self.visuals):
            yield f"visuals[{number}].sql", visual.sql
            if visual.figures:
                yield f"visuals[{number}].figures.sql", visual.figures.sql


def _check_unique(field: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{field}: the name '{name}' is given twice; allowed: each name once")
