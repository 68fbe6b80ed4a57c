"""The `transforms` of a pipeline's YAML, under the names of Kafka Connect's transforms.

The module also checks the transforms against the tables of the YAML. source_health/transformed_columns.py checks them
against the columns in the source's catalog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cdc_lake.contract.schema.transforms import Algorithm, Masking, TableTransforms
from cdc_lake.pipeline.field_types import ColumnName, Identifier, unique
from cdc_lake.yaml_model import YamlModel, field_error

_ADDED_BY_LAKE = ("__", "_hoodie_")


def _source_only(given: object) -> object:
    if given == "landing":
        raise ValueError(
            "transforms are applied at the source only, so that Kafka, raw objects and lake have the same values; "
            "write at: source, or leave it out"
        )
    return given


def _static(value: str) -> str:
    if not value or value != value.strip() or "${" in value or "\x00" in value:
        raise ValueError("use a text without blanks at its ends and without '${', which Connect would replace")
    return value


def _own_name(name: str) -> str:
    if name.startswith(_ADDED_BY_LAKE):
        raise ValueError("use another name: the lake adds columns that begin with '__' and '_hoodie_'")
    return name


NewColumn = Annotated[Identifier, AfterValidator(_own_name)]
Columns = Annotated[list[ColumnName], AfterValidator(unique), Field(min_length=1)]


class _Transform(YamlModel):
    """The fields that all transforms have."""

    table: Identifier | None = Field(default=None, description="the table; all tables if it is left out")
    at: Annotated[Literal["source"], BeforeValidator(_source_only)] = Field(
        default="source", description="source: it is applied before the records are in Kafka"
    )


class Hash(_Transform):
    """Replace the values of character columns by their salted hashes; the deployment has the salt."""

    type: Literal["hash"]
    columns: Columns = Field(description="character columns, as named at the source")
    algorithm: Algorithm = Field(default="SHA-256", description="SHA-256, SHA-384 or SHA-512")


class MaskField(_Transform):
    """Replace the values of character columns by asterisks."""

    type: Literal["MaskField"]
    columns: Columns = Field(description="character columns, as named at the source")
    length: Annotated[int, Field(strict=True, ge=1, le=1000)] = Field(
        default=8, description="the number of asterisks, 1 to 1000, which is the same for all values"
    )


class InsertField(_Transform):
    """Add columns with one constant value each, or with the name of the topic."""

    type: Literal["InsertField"]
    static: dict[NewColumn, Annotated[str, Field(strict=True), AfterValidator(_static)]] = Field(
        default_factory=dict, description="a mapping of new columns and their texts"
    )
    topic: NewColumn | None = Field(default=None, description="the new column with the name of the topic")

    @model_validator(mode="after")
    def _adds(self) -> Self:
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
    def _changes(self) -> Self:
        if not self.renames and not self.exclude:
            raise field_error(type(self).__name__, "renames", {}, "name a column in renames or exclude")
        return self


Transform = Annotated[Hash | MaskField | InsertField | ReplaceField, Field(discriminator="type")]


def of_table(transforms: Sequence[Transform], table: str) -> Iterator[Transform]:
    """Yield the transforms that apply to a table."""
    return (each for each in transforms if each.table in (None, table))


def excluded_columns(transforms: Sequence[Transform], table: str) -> list[str]:
    """Return the columns of a table that ReplaceField leaves out."""
    return [name for each in of_table(transforms, table) if isinstance(each, ReplaceField) for name in each.exclude]


def table_transforms(transforms: Sequence[Transform], table: str, topic: str) -> TableTransforms:
    """Return the combined transforms of a table, whose records are in `topic`."""
    masked: dict[str, Masking] = {}
    renamed: dict[str, str] = {}
    inserted: dict[str, str] = {}
    for each in of_table(transforms, table):
        match each:
            case Hash():
                masked |= dict.fromkeys(each.columns, Masking(algorithm=each.algorithm))
            case MaskField():
                masked |= dict.fromkeys(each.columns, Masking(asterisks=each.length))
            case ReplaceField():
                renamed |= each.renames
            case InsertField():
                inserted |= each.static | ({each.topic: topic} if each.topic else {})
    return TableTransforms(masked, renamed, inserted)


def fault(transforms: Sequence[Transform], tables: Mapping[str, Sequence[str]]) -> str | None:
    """Return why the transforms do not suit the tables, given with the columns that each requires; None if they do."""
    for each in transforms:
        if each.table is not None and each.table not in tables:
            return f"there is no table {each.table} in tables; name one of {', '.join(tables)}"
    for table, required in tables.items():
        if reason := _fault_of_table(list(of_table(transforms, table)), required):
            return f"{table}: {reason}"
    return None


def _fault_of_table(transforms: Sequence[Transform], required: Sequence[str]) -> str | None:
    masked = [name for each in transforms if isinstance(each, Hash | MaskField) for name in each.columns]
    replacing = [each for each in transforms if isinstance(each, ReplaceField)]
    renamed = [name for each in replacing for name in each.renames]
    excluded = [name for each in replacing for name in each.exclude]
    created = [name for each in replacing for name in each.renames.values()]
    for each in transforms:
        if isinstance(each, InsertField):
            created += [*each.static, *([each.topic] if each.topic else [])]
    if named := sorted({*masked, *renamed, *excluded} & set(required)):
        return f"{', '.join(named)} is in key, partition_by or poll, whose columns cannot be transformed; name others"
    if named := sorted(set(excluded) & {*masked, *renamed}):
        return f"{', '.join(named)} is excluded, so that no other transform can apply to it; remove one of them"
    for names, done in (
        (masked, "masked or hashed"),
        (renamed, "renamed"),
        (excluded, "excluded"),
        (created, "created"),
    ):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            return f"{', '.join(twice)} is {done} more than once; keep one of the transforms"
    return None
