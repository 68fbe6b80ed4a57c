"""The transforms of one table: those of a pipeline's YAML that apply to it, combined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cdc_lake.contract.schema.transforms import CastType, Masking, RecordKey, TableTransforms
from cdc_lake.pipeline.spec.transforms import (
    At,
    Cast,
    ExtractKey,
    Hash,
    InsertField,
    MaskField,
    ReplaceField,
    Transform,
    ValueToKey,
)


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
    keys = [each.fields for each in transforms if isinstance(each, ValueToKey)]
    return RecordKey(tuple(keys[0])) if keys else None
