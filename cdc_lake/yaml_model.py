"""The base model of mappings in YAML files. Its errors contain the field's name and the allowed values.

Pipelines (cdc_lake/pipeline/spec/pipeline.py) and dashboards (cdc_lake/dashboard/spec.py) use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails


class YamlModel(BaseModel):
    """A mapping with exactly the model's fields. Each field has a description, which is part of the errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @model_validator(mode="wrap")
    @classmethod
    def _explain_errors(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - any YAML
        try:
            return handler(value)
        except ValidationError as error:
            explained = [cls._explained(each) for each in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(error.title, explained) from None

    @classmethod
    def _explained(cls, details: ErrorDetails) -> InitErrorDetails:
        """Return the error, reworded if pydantic's message does not contain what is allowed."""
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        loc = details["loc"]
        error: InitErrorDetails = {
            "type": details["type"],
            "loc": loc,
            "input": details["input"],
            "ctx": details.get("ctx", {}),
        }
        if len(loc) > 1:
            return error  # a nested model has reworded it
        if not loc and details["type"] == "model_type":
            return _reworded(error, f"give a mapping with {', '.join(fields)}")
        if details["type"] == "extra_forbidden":
            return _reworded(error, f"unknown field; allowed here: {', '.join(fields)}")
        if details["type"] == "missing":
            return _reworded(error, f"missing; give {fields[str(loc[0])].description}")
        return error


def field_error(title: str, field: str, value: object, reason: str) -> ValidationError:
    """Return the error of a rule between several fields, reported at the field that has to change."""
    error: InitErrorDetails = {"type": "value_error", "loc": (field,), "input": value}
    return ValidationError.from_exception_data(title, [_reworded(error, reason)])


def error_lines(error: ValidationError, root: str = "attributes") -> Iterator[str]:
    """Yield one line for each error: `tables[0].key: …`. `root` names the outermost mapping."""
    for details in error.errors(include_url=False):
        reason = str(details["ctx"]["error"]) if details["type"] == "value_error" else details["msg"]
        value = f", not {details['input']!r}" if isinstance(details["input"], str | int | float) else ""
        yield f"{_path(details['loc']) or root}: {reason}{value}"


def _path(loc: Iterable[str | int]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return path.removeprefix(".")


def _reworded(error: InitErrorDetails, reason: str) -> InitErrorDetails:
    # Dagster creates the error again with file and line, which works only for pydantic's own types of errors.
    return {**error, "type": "value_error", "ctx": {"error": ValueError(reason)}}
