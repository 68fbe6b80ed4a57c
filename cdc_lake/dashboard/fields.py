"""What all parts of a dashboard's declaration share: names, sentences, SQL, and strictness.

Here: field types and the base model. Not here: the declaration (spec.py) and the chart kinds (chart_spec.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from cdc_lake.dashboard.message import placeholders
from cdc_lake.dashboard.sql import read_sql


def _read_sql(text: str, info: ValidationInfo) -> str:
    folder: Path | None = (info.context or {}).get("folder")
    return read_sql(text, folder)


def _check_template(text: str) -> str:
    placeholders(text)
    return text


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Text = Annotated[str, Field(min_length=1)]
Template = Annotated[str, Field(min_length=1), AfterValidator(_check_template)]
Sql = Annotated[str, Field(min_length=1), AfterValidator(_read_sql)]


class Strict(BaseModel):
    """Refuses unknown and missing fields in one message that lists the allowed ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:  # noqa: ANN401  (whatever the YAML holds here)
        if not isinstance(given, Mapping):
            return given
        faults = [f"unknown field '{key}'" for key in given if key not in cls.model_fields]
        for key, field in cls.model_fields.items():
            if field.is_required() and key not in given:
                faults.append(f"missing field '{key}' ({field.description})")
        if faults:
            allowed = ", ".join(cls.model_fields)
            raise PydanticCustomError("fields", "{text}", {"text": f"{'; '.join(faults)}; allowed: {allowed}"})
        return given
