"""The `transforms` of a pipeline's YAML, under the names of Kafka Connect's transforms.

The module also checks the transforms against the tables of the YAML. source_health/transformed_columns.py checks them
against the columns in the source's catalog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cdc_lake.contract.schema.transforms import Algorithm, CastType, Masking, RecordKey, TableTransforms
from cdc_lake.pipeline.field_types import ColumnName, Identifier, unique
from cdc_lake.yaml_model import YamlModel, field_error

_ADDED_BY_LAKE = ("__", "_hoodie_")


At = Literal["source", "landing"]


def _source_only(reason: str) -> AfterValidator:
    def check(given: At) -> At:
        if given == "landing":
            raise ValueError(f"{reason}; write at: source, or leave it out")
        return given

    return AfterValidator(check)


_BEFORE_KAFKA = _source_only("values are hidden before they are in Kafka and in dead letters")
_KAFKA_KEY = _source_only("raw objects contain no keys")


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
        if self.exclude and self.at == "landing":
            reason = "leave it out, or write at: source: a column that raw objects do not have need not be captured"
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


def of_table(transforms: Sequence[Transform], table: str) -> Iterator[Transform]:
    """Yield the transforms that apply to a table."""
    return (each for each in transforms if each.table in (None, table))


def excluded_columns(transforms: Sequence[Transform], table: str) -> list[str]:
    """Return the columns of a table that ReplaceField leaves out."""
    return excluded_names(of_table(transforms, table))


def excluded_names(transforms: Iterable[Transform]) -> list[str]:
    """Return the columns that these transforms leave out."""
    return [name for each in transforms if isinstance(each, ReplaceField) for name in each.exclude]


def table_transforms(transforms: Sequence[Transform], table: str, topic: str, at: At | None = None) -> TableTransforms:
    """Return the combined transforms of a table, whose records are in `topic`.

    `at` selects those that are applied at one place; None selects all.
    """
    masked: dict[str, Masking] = {}
    renamed: dict[str, str] = {}
    inserted: dict[str, str] = {}
    cast: dict[str, CastType] = {}
    for each in of_table(transforms, table):
        if at not in (None, each.at):
            continue
        match each:
            case Hash():
                masked |= dict.fromkeys(each.columns, Masking(algorithm=each.algorithm))
            case MaskField():
                masked |= dict.fromkeys(each.columns, Masking(asterisks=each.length))
            case ReplaceField():
                renamed |= each.renames
            case InsertField():
                inserted |= each.static | ({each.topic: topic} if each.topic else {})
            case Cast():
                cast |= each.spec
            case ValueToKey() | ExtractKey():
                pass
    return TableTransforms(masked, renamed, inserted, cast, _record_key(list(of_table(transforms, table))))


def _record_key(transforms: Sequence[Transform]) -> RecordKey | None:
    for each in transforms:
        if isinstance(each, ExtractKey):
            return RecordKey((each.field,), alone=True)
    made = [each.fields for each in transforms if isinstance(each, ValueToKey)]
    return RecordKey(tuple(made[0])) if made else None


def fault(
    transforms: Sequence[Transform], tables: Mapping[str, Sequence[str]], keys: Mapping[str, Sequence[str]]
) -> str | None:
    """Return why the transforms do not suit the tables; None if they do.

    `tables` are the columns that each table requires, `keys` those of its key.
    """
    for each in transforms:
        if each.table is not None and each.table not in tables:
            return f"there is no table {each.table} in tables; name one of {', '.join(tables)}"
    for table, required in tables.items():
        own = list(of_table(transforms, table))
        if reason := _fault_of_values(own, required) or _fault_of_key(own, keys[table]):
            return f"{table}: {reason}"
    return None


def _fault_of_key(transforms: Sequence[Transform], key: Sequence[str]) -> str | None:
    made = [each.fields for each in transforms if isinstance(each, ValueToKey)]
    extracted = [each.field for each in transforms if isinstance(each, ExtractKey)]
    if len(made) > 1 or len(extracted) > 1:
        return "its records have one key; keep one ValueToKey and one ExtractField$Key"
    fields = made[0] if made else key
    if lacking := [name for name in extracted if name not in fields]:
        return f"{lacking[0]} is not in the records' key ({', '.join(fields)}); name one of its columns"
    hidden = {name for each in transforms if isinstance(each, Hash | MaskField) for name in each.columns}
    if named := sorted({*fields} & {*hidden, *excluded_names(transforms)}):
        return f"{', '.join(named)} is hashed, masked or excluded, and cannot be in the records' key; name others"
    return None


def _fault_of_values(transforms: Sequence[Transform], required: Sequence[str]) -> str | None:
    masked = [name for each in transforms if isinstance(each, Hash | MaskField) for name in each.columns]
    replacing = [each for each in transforms if isinstance(each, ReplaceField)]
    renamed = [name for each in replacing for name in each.renames]
    excluded = excluded_names(transforms)
    cast = [name for each in transforms if isinstance(each, Cast) for name in each.spec]
    created = [name for each in replacing for name in each.renames.values()]
    for each in transforms:
        if isinstance(each, InsertField):
            created += [*each.static, *([each.topic] if each.topic else [])]
    if named := sorted({*masked, *renamed, *excluded, *cast} & set(required)):
        return f"{', '.join(named)} is in key, partition_by or poll, whose columns cannot be transformed; name others"
    if named := sorted(set(excluded) & {*masked, *renamed, *cast}):
        return f"{', '.join(named)} is excluded, so that no other transform can apply to it; remove one of them"
    for names, done in (
        (masked, "masked or hashed"),
        (renamed, "renamed"),
        (excluded, "excluded"),
        (cast, "cast"),
        (created, "created"),
    ):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            return f"{', '.join(twice)} is {done} more than once; keep one of the transforms"
    return None
