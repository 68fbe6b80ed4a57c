"""Schema evolution: decide which changes need no new snapshot, and merge the previous version into a new one.

PostgreSQL streams no event for a change of a table's columns. The change can be applied if the new values follow from
the stored rows. Otherwise (the type's text form changes, the default differs for each row) only a new snapshot can
apply it, and the change is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cdc_lake.contract.errors import SchemaChangeError, reset_advice
from cdc_lake.contract.schema import column_types
from cdc_lake.contract.schema.widening import is_widening

if TYPE_CHECKING:
    from cdc_lake.contract.schema.captured_schema import Column, TableSchema

# Types to which Hudi can promote a column when it rewrites all rows, by the old type. Hudi casts any other new type
# back to the old one, as it does for a batch with an older schema.
_HUDI_PROMOTIONS = {
    "int": {"bigint", "float", "double", "decimal", "string"},
    "bigint": {"double", "decimal", "string"},
    "float": {"double"},
    "boolean": {"string"},
}


def match_columns(old: TableSchema, new: TableSchema) -> dict[str, Column]:
    """Return the columns of `old` by their names in `new`; the same attnum means the same column."""
    same_table = old.oid == new.oid or None in {old.oid, new.oid}
    by_number = {column.attnum: column for column in old.columns if column.attnum is not None and same_table}
    by_name = {column.name: column for column in old.columns if column.attnum is None or not same_table}
    found = {}
    for column in new.columns:
        before = by_number.get(column.attnum) if same_table and column.attnum is not None else None
        before = before or by_name.get(column.name)
        if before is None and column.attnum is None:
            before = next((each for each in old.columns if each.name == column.name), None)
        if before is not None:
            found[column.name] = before
    return found


def differs(old: TableSchema, new: TableSchema) -> bool:
    """Return whether a table's current schema, `new`, differs from its newest version, `old`.

    `missing` is ignored, because PostgreSQL removes it from the catalog when it rewrites the table.
    """
    return _compared_fields(old) != _compared_fields(new)


def _compared_fields(schema: TableSchema) -> tuple[object, ...]:
    columns = tuple(column.model_copy(update={"missing": None}) for column in schema.columns)
    return (columns, schema.key, schema.epoch, schema.oid, schema.omitted)


def next_version(versions: Sequence[TableSchema], new: TableSchema, pipeline: str) -> TableSchema:
    """Return the version after `versions`: the schema `new`, with dropped columns and old defaults carried over.

    Raises SchemaChangeError for a change that cannot be applied to stored and landed data. A version that begins a new
    epoch may have other changes, because the new snapshot sends every row. The key must be unchanged even then, and
    Hudi must be able to promote changed types.
    """
    old = versions[-1]
    _require_same_key(old, new, pipeline)
    _require_storable(old, new, pipeline)
    same_epoch = [version for version in versions if version.epoch == new.epoch]
    faults = _unsupported_changes(same_epoch, new) if same_epoch else []
    if faults:
        raise schema_change_error(pipeline, new.table, faults)
    before = match_columns(old, new)
    columns = tuple(
        column.model_copy(update={"missing": before[column.name].missing}) if column.name in before else column
        for column in new.columns
    )
    current = {column.name.lower() for column in columns}
    history = {column.name.lower(): column for column in (*old.dropped, *old.columns)}
    dropped = tuple(column for name, column in history.items() if name not in current)
    return new.model_copy(update={"version": old.version + 1, "columns": columns, "dropped": dropped})


def _require_same_key(old: TableSchema, new: TableSchema, pipeline: str) -> None:
    """Raise SchemaChangeError if the primary key changed: even a new snapshot cannot match the stored rows."""
    why = f"and the lake identifies rows by the key. The lake is unchanged. To rebuild it, {reset_advice(pipeline)}."
    if old.key != new.key:
        raise SchemaChangeError(
            f"Cannot capture the schema of {new.table}: its primary key changed from ({', '.join(old.key)}) to "
            f"({', '.join(new.key)}), {why}"
        )
    other = [name for name in new.key if name not in match_columns(old, new)]
    if other:
        raise SchemaChangeError(
            f"Cannot capture the schema of {new.table}: column {other[0]} of its primary key was dropped and another "
            f"column has its name, {why}"
        )


def _require_storable(old: TableSchema, new: TableSchema, pipeline: str) -> None:
    """Raise SchemaChangeError if a lake column's type changes to one that Hudi cannot promote it to."""
    lake_types = {column.name.lower(): column.lake_type for column in (*old.columns, *old.dropped)}
    for column in new.columns:
        old_type = lake_types.get(column.name.lower(), column.lake_type)
        if old_type != column.lake_type and not _promotable(old_type, column.lake_type):
            raise SchemaChangeError(
                f"Cannot change the type of column {column.name} of {new.table}: Hudi cannot promote {old_type}, "
                f"its type in the lake, to {column.lake_type}. Nothing was changed. Rename the column at the source, "
                f"or {reset_advice(pipeline)}."
            )


def _promotable(old: str, new: str) -> bool:
    old_base, new_base = old.partition("(")[0], new.partition("(")[0]
    if old_base == new_base == "decimal":
        (precision, scale), (new_precision, new_scale) = column_types.arguments(old), column_types.arguments(new)
        return new_scale >= scale and new_precision - new_scale >= precision - scale
    return new_base in _HUDI_PROMOTIONS.get(old_base, ())


def require_one_landed_type(old: TableSchema, new: TableSchema, pipeline: str) -> None:
    """Raise SchemaChangeError if a column's type changes so that one table cannot read older and newer raw objects.

    Readers can convert int to bigint, and a decimal to one with the same scale and more digits before the point. A new
    snapshot does not help, because the older objects stay in the table.
    """
    lake_types = dict(old.lake_columns())
    for column in new.columns:
        old_type = lake_types.get(column.name.lower(), column.lake_type)
        decimal = old_type.startswith("decimal") and column.lake_type.startswith("decimal")
        same_scale = column_types.arguments(old_type)[1:] == column_types.arguments(column.lake_type)[1:]
        wider_decimal = decimal and same_scale and _promotable(old_type, column.lake_type)
        readable = wider_decimal or (old_type, column.lake_type) == ("int", "bigint")
        if old_type != column.lake_type and not readable:
            raise SchemaChangeError(
                f"Cannot change the type of column {column.name} of {new.table}: the landed objects have "
                f"{old_type}, and one table cannot read both that and {column.lake_type}. Nothing was changed. "
                f"Rename the column at the source, or {reset_advice(pipeline)}."
            )


def schema_change_error(pipeline: str, table: str, faults: Sequence[str]) -> SchemaChangeError:
    """Return the error for changes that only a new snapshot can apply."""
    return SchemaChangeError(
        f"Cannot apply the schema change of {table} to the stored data: {'; '.join(faults)}. Nothing was changed. Run "
        f"`cdc-lake resnapshot {pipeline}`, which reads all tables of the pipeline again."
    )


def describe_changes(old: TableSchema, new: TableSchema) -> list[str]:
    """Return the changes between two versions as phrases, each about one column."""
    before = match_columns(old, new)
    kept = {column.name for column in before.values()}
    phrases = []
    for column in new.columns:
        was = before.get(column.name)
        if was is None:
            shows = "NULL" if column.missing is None else column.missing
            phrases.append(f"{column.name} {column.type} added (older rows show {shows})")
        else:
            if was.name != column.name:
                phrases.append(f"{was.name} renamed to {column.name}")
            if was.type != column.type:
                verb = "widened" if is_widening(was, column) else "changed"
                phrases.append(f"{column.name} {verb} from {was.type} to {column.type}")
    gone = [column.name for column in old.columns if column.name not in kept]
    reasons, before_reasons = ({column.name: column.reason for column in each.omitted} for each in (new, old))
    phrases += [f"{name} {'omitted' if name in reasons else 'dropped'} (kept as history)" for name in gone]
    phrases += [
        f"{name} omitted ({reason})"
        for name, reason in reasons.items()
        if name not in gone and before_reasons.get(name) != reason
    ]
    return phrases


def _unsupported_changes(same_epoch: Sequence[TableSchema], new: TableSchema) -> list[str]:
    old = same_epoch[-1]
    if None not in {old.oid, new.oid} and old.oid != new.oid:
        return ["the table was dropped and re-created, so rows changed without an event"]
    before = match_columns(old, new)
    faults = [
        f"column {column.name} changed from {was.type} to {column.type}: its values cannot be derived from the old ones"
        for column in new.columns
        if (was := before.get(column.name)) is not None and not is_widening(was, column)
    ]
    faults += [
        f"the values of column {column.name} change from now on, because a transform was added, changed or removed"
        for column in new.columns
        if (was := before.get(column.name)) is not None
        and (was.masked, was.inserted) != (column.masked, column.inserted)
    ]
    faults += _changes_of_omission(old, new)
    # A record has no version number: only the names of its fields show its version.
    attnums: dict[str, int | None] = {}
    for version in same_epoch:
        attnums |= {column.name.lower(): column.attnum for column in version.omitted}
        attnums |= {column.name.lower(): column.attnum for column in version.columns}
    faults += [
        f"column {column.name} has the name of an earlier column, so older records are ambiguous"
        for column in new.columns
        if None not in {column.attnum, attnums.get(column.name.lower(), column.attnum)}
        and attnums.get(column.name.lower(), column.attnum) != column.attnum
    ]
    return faults


def _changes_of_omission(old: TableSchema, new: TableSchema) -> list[str]:
    """Return the faults for columns that were omitted and are now captured, and the other way round.

    Records contain no value of a column that was omitted. A captured column may become omitted only if the YAML
    excludes it: otherwise the lake would silently stop receiving its changes.
    """
    omitted = {column.attnum for column in old.omitted} - {None}
    captured = {column.attnum for column in old.columns} - {None}
    faults = [
        f"column {column.name} was omitted until now, so no record has its values (to keep omitting it, name it in "
        "exclude_columns)"
        for column in new.columns
        if column.attnum in omitted
    ]
    return faults + [
        f"column {column.name} was captured until now and cannot be captured any more: {column.reason} (to keep only "
        "its history, name it in exclude_columns)"
        for column in new.omitted
        if column.attnum in captured and not column.excluded
    ]
