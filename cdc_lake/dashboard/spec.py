"""The fields of a dashboard's YAML, the rules between them, and reading the file.

A chart is a Vega-Lite specification without data: https://vega.github.io/vega-lite/docs/
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from cdc_lake.dashboard.formats import Format
from cdc_lake.dashboard.sql import check_select, read_file
from cdc_lake.yaml_model import YamlModel, error_lines
from resources.quicksight.templates import Template, check_templates

_PLACEHOLDER = re.compile(r"{([a-z][a-z0-9_]*)}")


class DashboardError(ValueError):
    """The YAML is not valid, or a query result does not match it."""


def _check_sentence(text: str) -> str:
    if set("{}") & set(_PLACEHOLDER.sub("", text)):
        raise ValueError("braces are for values; allowed: a value's name in braces, as in {revenue}")
    return text


def _read_sql(text: str, info: ValidationInfo) -> str:
    is_file = text.endswith(".sql") and len(text.split()) == 1
    return read_file(text, (info.context or {}).get("folder")) if is_file else text.strip()


def _read_json(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(read_file(value, (info.context or {}).get("folder")))
    except json.JSONDecodeError as error:
        raise ValueError(f"{value} is not valid JSON: {error}") from error


def _read_template(value: object, info: ValidationInfo) -> object:
    return Template(value, _read_json(value, info)) if isinstance(value, str) else value


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Text = Annotated[str, Field(min_length=1)]
Sentence = Annotated[Text, AfterValidator(_check_sentence)]
Sql = Annotated[Text, AfterValidator(_read_sql)]
Chart = Annotated[dict[str, Any], BeforeValidator(_read_json)]
TemplateFile = Annotated[InstanceOf[Template], BeforeValidator(_read_template)]


class Column(YamlModel):
    """A column of a query."""

    format: Format = Field(Format.TEXT, description="the format of its values")
    label: Text | None = Field(None, description="its heading; without it, the column's name in words")


class QuerySpec(YamlModel):
    """A query and its columns."""

    sql: Sql = Field(description="a SELECT, or the .sql file that contains it")
    columns: dict[Name, Column] = Field(min_length=1, description="the query's columns")

    def heading(self, column: str) -> str:
        """Return a column's heading."""
        return self.columns[column].label or column.replace("_", " ").capitalize()


class Visual(QuerySpec):
    """A chart with its title, its message and the table of its data; its query returns a row for each mark."""

    name: Name = Field(description="an identifier, used in element ids and metadata")
    title: Sentence = Field(description="the heading, a sentence with values in braces")
    message: Sentence = Field(description="the text above the chart, with values in braces")
    values: QuerySpec | None = Field(None, description="values for title and message, from a query of one row")
    chart: Chart = Field(description="a Vega-Lite specification without data, or the .json file that contains it")
    show: int | None = Field(None, ge=1, description="how many rows the chart shows before a click on Show all")

    @model_validator(mode="after")
    def _check_chart(self) -> Self:
        if "data" in self.chart:
            raise ValueError("chart has data; allowed: a specification without it, because its rows come from sql")
        if not {"mark", "layer"} & self.chart.keys():
            raise ValueError("chart has neither mark nor layer; allowed: a Vega-Lite specification of one view")
        known = [*self.columns, *_texts(self.chart, "as")]
        for name in self.fields():
            if name not in known:
                raise ValueError(f"chart uses the field '{name}'; allowed: {', '.join(known)}")
        return self

    def fields(self) -> list[str]:
        """Return the fields that the chart reads: columns, and fields that the chart computes."""
        return list(_texts(self.chart, "field"))


def _texts(part: object, key: str) -> Iterator[str]:
    """Yield each string value of a key in a specification, except in layers with their own data and in `usermeta`."""
    if isinstance(part, list):
        for each in part:
            yield from _texts(each, key)
    elif isinstance(part, dict) and "data" not in part:
        for name, value in part.items():
            if name == key:
                yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))
            if name != "usermeta":
                yield from _texts(value, key)


class QuickSightSpec(YamlModel):
    """The same data in QuickSight, on AWS; resources/quicksight/templates.py explains the placeholders."""

    sql: Sql = Field(description="a SELECT of the data set's rows, or the .sql file that contains it")
    data_set: TemplateFile = Field(description="the .json file with the data set's template")
    definition: TemplateFile = Field(description="the .json file with the template of the analysis and the dashboard")

    @model_validator(mode="after")
    def _check_templates(self) -> Self:
        check_templates(self.data_set, self.definition)
        return self


class DashboardSpec(YamlModel):
    """A dashboard."""

    title: Text = Field(description="the page's heading")
    subtitle: Text = Field(description="a sentence below the heading")
    database: Name = Field(description="the Athena database")
    dataset: Name = Field(description="the table or view that all of the dashboard's SQL reads")
    currency: Text = Field("$", description="the sign before amounts of money")
    key_figures: QuerySpec | None = Field(None, description="values at the top of the page, from a query of one row")
    visuals: tuple[Visual, ...] = Field(min_length=1, description="the charts")
    quicksight: QuickSightSpec | None = Field(None, description="the dashboard in QuickSight, on AWS")

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [visual.name for visual in self.visuals]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"visuals: several have the name {', '.join(twice)}; give each a name of its own")
        for number, visual in enumerate(self.visuals):
            known = [name for query in (self.key_figures, visual.values) if query for name in query.columns]
            for name in _PLACEHOLDER.findall(f"{visual.title} {visual.message}"):
                if name not in known:
                    allowed = ", ".join(known) or "none"
                    raise ValueError(f"visuals[{number}]: title or message uses the value '{name}'; allowed: {allowed}")
        return self

    @model_validator(mode="after")
    def _check_sql(self) -> Self:
        quicksight = [("quicksight.sql", self.quicksight.sql)] if self.quicksight else []
        for field, sql in (*self.queries(), *quicksight):
            try:
                check_select(sql, self.database, self.dataset)
            except ValueError as error:
                raise ValueError(f"{field}: {error}") from error
        return self

    def queries(self) -> Iterator[tuple[str, str]]:
        """Yield each SQL text of the page with its field."""
        if self.key_figures:
            yield "key_figures.sql", self.key_figures.sql
        for number, visual in enumerate(self.visuals):
            yield f"visuals[{number}].sql", visual.sql
            if visual.values:
                yield f"visuals[{number}].values.sql", visual.values.sql


def load_dashboard(path: Path) -> DashboardSpec:
    """Return the dashboard of a YAML file; paths in the YAML are relative to its folder.

    Raises DashboardError with one line for each error: the file, the field and what is allowed.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DashboardError(
            f"Cannot read the dashboard {path}: {error.strerror}. Correct the path in the pipeline's YAML."
        ) from error
    except yaml.YAMLError as error:
        raise DashboardError(f"Cannot read {path}: it is not valid YAML: {error}") from error
    try:
        return DashboardSpec.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        raise DashboardError("\n".join(f"{path}: {line}" for line in error_lines(error, "dashboard"))) from error
