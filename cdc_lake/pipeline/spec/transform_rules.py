"""Check a YAML's transforms against its tables.

source_health/transformed_columns.py checks them against the columns in the source's catalog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cdc_lake.pipeline.spec.field_types import with_verb
from cdc_lake.pipeline.spec.table_transforms import excluded_names, of_table
from cdc_lake.pipeline.spec.transforms import (
    Cast,
    ExtractKey,
    Hash,
    InsertField,
    MaskField,
    ReplaceField,
    Transform,
    ValueToKey,
)


def find_fault(
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
    keys = [each.fields for each in transforms if isinstance(each, ValueToKey)]
    extracted = [each.field for each in transforms if isinstance(each, ExtractKey)]
    if len(keys) > 1 or len(extracted) > 1:
        return "its records have one key; keep one ValueToKey and one ExtractField$Key"
    fields = keys[0] if keys else key
    if lacking := [name for name in extracted if name not in fields]:
        return f"{lacking[0]} is not in the records' key ({', '.join(fields)}); name one of its columns"
    hidden = {name for each in transforms if isinstance(each, Hash | MaskField) for name in each.columns}
    if named := sorted({*fields} & {*hidden, *excluded_names(transforms)}):
        return f"{with_verb(named)} hashed, masked or excluded, and cannot be in the records' key; name others"
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
        return f"{with_verb(named)} in key, partition_by or poll, whose columns cannot be transformed; name others"
    if named := sorted(set(excluded) & {*masked, *renamed, *cast}):
        return (
            f"{with_verb(named)} excluded, and no other transform can apply to an excluded column; remove one of them"
        )
    for names, done in (
        (masked, "masked or hashed"),
        (renamed, "renamed"),
        (excluded, "excluded"),
        (cast, "cast"),
        (created, "created"),
    ):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            return f"{with_verb(twice)} {done} more than once; keep one of the transforms"
    return None
