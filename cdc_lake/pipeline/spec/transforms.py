"""The `transforms` of a pipeline's YAML, under the names of Kafka Connect's transforms."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cdc_lake.contract.schema.transforms import Algorithm, CastType
from cdc_lake.pipeline.spec.field_types import ColumnName, Identifier, unique
from cdc_lake.yaml_model import YamlModel, field_error

_ADDED_BY_LAKE = ("__", "_hoodie_")


At = Literal["source", "landing"]


def _source_only(reason: str) -> AfterValidator:
    def check(given: At) -> At:
        if given == "landing":
            raise ValueError(f"{reason}; write at: source, or remove it")
        return given

    return AfterValidator(check)


_BEFORE_KAFKA = _source_only("values are hidden before they are in Kafka and in dead letters")
_KAFKA_KEY = _source_only("raw objects contain no keys")


def _static_text(value: str) -> str:
    if not value or value != value.strip() or "${" in value or "\x00" in value:
        raise ValueError("use a text without blanks at its ends and without '${', which Connect would replace")
    return value


def _not_reserved(name: str) -> str:
    if name.startswith(_ADDED_BY_LAKE):
        raise ValueError("use another name: the lake adds columns that begin with '__' and '_hoodie_'")
    return name


NewColumn = Annotated[Identifier, AfterValidator(_not_reserved)]
Columns = Annotated[list[ColumnName], AfterValidator(unique), Field(min_length=1)]


class _Transform(YamlModel):
    """The fields that all transforms have."""

    table: Identifier | None = Field(default=None, description="the table; all tables if it is left out")
    at: At = Field(
        default="source",
        description="source (before the records are in Kafka) or landing (Kafka has the original records)",
    )


class Hash(_Transform):
    """Replace the values of character columns by their salted hashes; the deployment has the salt."""

    type: Literal["hash"]
    at: Annotated[At, _BEFORE_KAFKA] = Field(default="source", description="source")
    columns: Columns = Field(description="character columns, as named at the source")
    algorithm: Algorithm = Field(default="SHA-256", description="SHA-256, SHA-384 or SHA-512")


class MaskField(_Transform):
    """Replace the values of character columns by asterisks."""

    type: Literal["MaskField"]
    at: Annotated[At, _BEFORE_KAFKA] = Field(default="source", description="source")
    columns: Columns = Field(description="character columns, as named at the source")
    length: Annotated[int, Field(strict=True, ge=1, le=1000)] = Field(
        default=8, description="the number of asterisks, 1 to 1000, which is the same for all values"
    )


class InsertField(_Transform):
    """Add columns with one constant value each, or with the name of the topic."""

    type: Literal["InsertField"]
    static: dict[NewColumn, Annotated[str, Field(strict=True), AfterValidator(_static_text)]] = Field(
        default_factory=dict, description="a mapping of new columns and their texts"
    )
    topic: NewColumn | None = Field(default=None, description="the new column with the name of the topic")

    @model_validator(mode="after")
    def _inserts_a_column(self) -> Self:
        if not self.static and self.topic is None:
            raise field_error(type(self).__name__, "static", {}, "name a column in static or topic")
        return self


class ReplaceField(_Transform):
    """Rename columns, or leave columns out as exclude_columns of a table does."""

    type: Literal["ReplaceField"]
    renames: dict[ColumnName, NewColumn] = Field(
        default_factory=dict, description="a mapping of columns, as named at the source, and their new names"
    )
    exclude: Annotated[list[ColumnName], AfterValidator(unique)] = Field(
        default_factory=list, description="columns that are not captured, as named at the source"
    )

    @model_validator(mode="after")
    def _changes_a_column(self) -> Self:
        if not self.renames and not self.exclude:
            raise field_error(type(self).__name__, "renames", {}, "name a column in renames or exclude")
        if self.exclude and self.at == "landing":
            reason = "not allowed with at: landing, because an excluded column is not captured at all; write at: source"
            raise field_error(type(self).__name__, "exclude", None, reason)
        return self


class Cast(_Transform):
    """Change the types of columns to types that have the same values."""

    type: Literal["Cast"]
    spec: dict[ColumnName, CastType] = Field(
        min_length=1,
        description="a mapping of columns, as named at the source, and int32, int64, float64 or string",
    )


class ValueToKey(_Transform):
    """Make the records' keys of columns; the lake's key does not change."""

    type: Literal["ValueToKey"]
    at: Annotated[At, _KAFKA_KEY] = Field(default="source", description="source")
    fields: Columns = Field(description="captured columns, as named at the source")


class ExtractKey(_Transform):
    """Make the value of one field of a record's key the whole key."""

    type: Literal["ExtractField$Key"]
    at: Annotated[At, _KAFKA_KEY] = Field(default="source", description="source")
    field: ColumnName = Field(description="a column of the key, as named at the source")


Transform = Annotated[
    Hash | MaskField | InsertField | ReplaceField | Cast | ValueToKey | ExtractKey, Field(discriminator="type")
]
