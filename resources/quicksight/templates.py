"""JSON templates of QuickSight's requests, with `{{name}}` placeholders.

A data set template has the members of
https://docs.aws.amazon.com/quicksight/latest/APIReference/API_CreateDataSet.html, a definition template those of
https://docs.aws.amazon.com/quicksight/latest/APIReference/API_DashboardVersionDefinition.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from botocore.model import ListShape, MapShape, ServiceModel, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

_PLACEHOLDER = re.compile(r"\{\{\s*([a-z][a-z0-9_]*)\s*\}\}")
_DATA_SET_PLACEHOLDERS = {"data_source_arn", "sql", "title"}
_DEFINITION_PLACEHOLDERS = {"data_set_arn", "sheet_id", "title"}
_EXAMPLE_ARN = "arn:aws:quicksight:us-east-1:123456789012:dataset/example"


@dataclass(frozen=True)
class Template:
    """A JSON template."""

    file: str
    """The file's name, for errors."""
    content: Any

    def filled(self, **values: str) -> dict[str, Any]:
        """Return the content with its placeholders filled."""
        return dict(_filled(self.content, values))

    def check(self, allowed: set[str]) -> None:
        """Raise ValueError unless the content is an object with these placeholders and no others; title is optional."""
        if not isinstance(self.content, dict):
            raise ValueError(f"{self.file} does not contain a JSON object")  # noqa: TRY004 - pydantic reports ValueErrors
        used: set[str] = set()
        for path, _, text in _texts(self.content):
            names = set(_PLACEHOLDER.findall(text))
            if unknown := sorted(names - allowed):
                known = ", ".join(sorted(allowed))
                raise ValueError(f"{self.file}: {path}: unknown placeholder {unknown[0]}; allowed: {known}")
            used |= names
        if missing := sorted(allowed - used - {"title"}):
            raise ValueError(f"{self.file}: no field contains the placeholder {missing[0]}, which is required")


@dataclass(frozen=True)
class DashboardTemplates:
    """The templates of a dashboard, and those of their values that are the same in every account."""

    id: str
    """Letters, digits, `-` and `_`."""
    title: str
    sql: str
    """One SELECT in Athena's dialect; it names tables with their database."""
    data_set: Template
    definition: Template

    def data_set_request(self, data_source_arn: str) -> dict[str, Any]:
        """Return the members of a CreateDataSet or UpdateDataSet request that the template has."""
        return self.data_set.filled(data_source_arn=data_source_arn, sql=self.sql, title=self.title)

    def definition_of(self, data_set_arn: str, sheet_id: str) -> dict[str, Any]:
        """Return the Definition of an analysis or a dashboard."""
        return self.definition.filled(data_set_arn=data_set_arn, sheet_id=sheet_id, title=self.title)

    def check_model(self, model: ServiceModel) -> None:
        """Raise ValueError, with file and field, for what QuickSight's service model does not allow."""
        account = {"AwsAccountId": "123456789012"}
        data_set = {"DataSetId": "example", "ImportMode": "SPICE", **self.data_set_request(_EXAMPLE_ARN)}
        dashboard = {
            "DashboardId": "example",
            "Name": self.title,
            "Definition": self.definition_of(_EXAMPLE_ARN, "id"),
        }
        for template, operation, request in (
            (self.data_set, "CreateDataSet", data_set),
            (self.definition, "CreateDashboard", dashboard),
        ):
            if errors := request_errors(model, operation, {**account, **request}):
                raise ValueError(f"{template.file} is not valid: {'; '.join(errors)}")


def check_templates(data_set: Template, definition: Template) -> None:
    """Raise ValueError, with file and field, for an unknown or missing placeholder, column or data set."""
    data_set.check(_DATA_SET_PLACEHOLDERS)
    definition.check(_DEFINITION_PLACEHOLDERS)
    selected_columns(data_set)
    columns = {text for _, key, text in _texts(data_set.content) if key in ("Name", "ColumnName", "NewColumnName")}
    columns |= {text for _, key, text in _texts(definition.content.get("CalculatedFields")) if key == "Name"}
    identifiers = {text for _, key, text in _texts(definition.content) if key == "Identifier"}
    for path, key, text in _texts(definition.content):
        if key == "ColumnName" and text not in columns:
            raise ValueError(f"{definition.file}: {path}: {data_set.file} has no column {text}")
        if key == "DataSetIdentifier" and text not in identifiers:
            raise ValueError(f"{definition.file}: {path}: DataSetIdentifierDeclarations has no data set {text}")


def selected_columns(data_set: Template) -> list[str]:
    """Return the columns that the data set's SQL selects. Raises ValueError unless it has a CustomSql with Columns."""
    for table in data_set.content.get("PhysicalTableMap", {}).values():
        if columns := table.get("CustomSql", {}).get("Columns"):
            return [column["Name"] for column in columns]
    raise ValueError(f"{data_set.file}: PhysicalTableMap has no table with CustomSql and Columns")


def request_errors(model: ServiceModel, operation: str, request: Mapping[str, Any]) -> list[str]:
    """Return the errors of a request according to the service model, including limits that boto3 does not check."""
    shape = cast("Shape", model.operation_model(operation).input_shape)
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        return str(report.generate_report()).splitlines()
    return list(_limit_errors(shape, request, ""))


def _limit_errors(shape: Shape, value: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - part of a request
    if isinstance(shape, StructureShape):
        for name, part in value.items():
            yield from _limit_errors(shape.members[name], part, f"{path}.{name}".lstrip("."))
    elif isinstance(shape, ListShape):
        for number, part in enumerate(value):
            yield from _limit_errors(shape.member, part, f"{path}[{number}]")
    elif isinstance(shape, MapShape):
        for name, part in value.items():
            yield from _limit_errors(shape.value, part, f"{path}.{name}")
    elif isinstance(shape, StringShape) and shape.enum and value not in shape.enum:
        yield f"{path}: {value!r} is not allowed; allowed: {', '.join(shape.enum)}"
    limits = shape.metadata
    if isinstance(value, str) and "pattern" in limits and not re.search(limits["pattern"], value):
        yield f"{path}: {value!r} does not match {limits['pattern']}"
    if isinstance(value, bool):
        return
    size = len(value) if isinstance(value, str | list | dict) else value
    if not limits.get("min", size) <= size <= limits.get("max", size):
        yield f"{path}: {value!r} is not within {limits.get('min', '')}..{limits.get('max', '')}"


def _texts(part: object, path: str = "", key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each text with its path and its key."""
    if isinstance(part, str):
        yield path, key, part
    elif isinstance(part, list):
        for number, each in enumerate(part):
            yield from _texts(each, f"{path}[{number}]", key)
    elif isinstance(part, dict):
        for name, each in part.items():
            yield from _texts(each, f"{path}.{name}".lstrip("."), name)


def _filled(part: Any, values: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, str):
        return _PLACEHOLDER.sub(lambda match: values[match[1]], part)
    if isinstance(part, list):
        return [_filled(each, values) for each in part]
    if isinstance(part, dict):
        return {name: _filled(each, values) for name, each in part.items()}
    return part
