"""What is wrong with a pipeline's YAML, said by field and with what is allowed there.

Here: the wording, the same for whoever reads the file: Dagster, which adds file and line, and load.py.
Not here: the rules (spec.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails


class YamlPart(BaseModel):
    """A mapping of the YAML: exactly its fields, each described, for its description is part of the errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - any YAML
        try:
            return handler(value)
        except ValidationError as error:
            faults = [cls._explained(fault) for fault in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(error.title, faults) from None

    @classmethod
    def _explained(cls, fault: ErrorDetails) -> InitErrorDetails:
        """One of pydantic's findings; those that don't say what is allowed are put into words that do."""
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        loc = fault["loc"]
        told: InitErrorDetails = {
            "type": fault["type"],
            "loc": loc,
            "input": fault["input"],
            "ctx": fault.get("ctx", {}),
        }
        if len(loc) > 1:
            return told  # a part below this one has put it into words
        if not loc and fault["type"] == "model_type":
            return _in_place(told, f"give a mapping with {', '.join(fields)}")
        if fault["type"] == "extra_forbidden":
            return _in_place(told, f"unknown field; allowed here: {', '.join(fields)}")
        if fault["type"] == "missing":
            return _in_place(told, f"missing; give {fields[str(loc[0])].description}")
        return told


def refuse(title: str, field: str, given: object, reason: str) -> ValidationError:
    """The error of a rule that several fields have to keep, at the field that is to be changed."""
    told: InitErrorDetails = {"type": "value_error", "loc": (field,), "input": given}
    return ValidationError.from_exception_data(title, [_in_place(told, reason)])


def lines(error: ValidationError) -> Iterator[str]:
    """A line a fault: `tables[0].key: …`."""
    for fault in error.errors(include_url=False):
        reason = str(fault["ctx"]["error"]) if fault["type"] == "value_error" else fault["msg"]
        given = f", not {fault['input']!r}" if isinstance(fault["input"], str | int | float) else ""
        yield f"{_path(fault['loc'])}: {reason}{given}"


def _path(loc: Iterable[str | int]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return path.removeprefix(".") or "attributes"


def _in_place(told: InitErrorDetails, reason: str) -> InitErrorDetails:
    # Dagster makes the error anew with file and line, which works for pydantic's own kinds of errors only.
    return {**told, "type": "value_error", "ctx": {"error": ValueError(reason)}}
