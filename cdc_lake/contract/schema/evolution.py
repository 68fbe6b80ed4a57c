"""Schema evolution: which changes need no new snapshot, and what a new version keeps of the previous one.

A change of a table's columns writes no event to the WAL. It can be applied if the new values follow from the stored
rows. Otherwise (the type's text form changes, the default differs for each row) only a new snapshot can apply it, and
the change is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cdc_lake.contract.errors import SchemaChangeError
from cdc_lake.contract.schema import column_types

if TYPE_CHECKING:
    from cdc_lake.contract.schema.captured_schema import Column, TableSchema

# ALTER TYPE from the left to a type on the right keeps all values, and older and newer records parse alike.
# Lengths and precisions are compared separately. Not real to double precision: PostgreSQL turns 0.1 into
# 0.10000000149011612, and a replay of old records would write 0.1 again. Not numeric to text: records have 0.00000015
# as 1.5E-7, which is not the text that PostgreSQL stores.
_INTEGERS = ("smallint", "integer", "bigint")
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_WIDENINGS = {
    "smallint": {"integer", "bigint", "numeric", "real", "double precision", "text", "character varying"},
    "integer": {"bigint", "numeric", "double precision", "text", "character varying"},
    "bigint": {"numeric", "text", "character varying"},
    "numeric": {"numeric"},
    "boolean": {"text"},
    "character varying": {"character varying", "text", "citext"},
    "text": {"citext"},
    "citext": {"text"},
    "uuid": {"text"},
    "jsonb": {"text", "json"},
    "json": {"text"},
    "xml": {"text"},
    "timestamp without time zone": {"timestamp without time zone"},
    "timestamp with time zone": {"timestamp with time zone"},
    "time without time zone": {"time without time zone"},
    "time with time zone": {"time with time zone"},
}


# Lake types that Hudi can promote a column to when it rewrites all rows. Any other new type Hudi casts back to the old
# one, as it does for a batch with an older schema.
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


def differs(old: TableSchema, seen: TableSchema) -> bool:
    """Return whether `seen` differs from the newest version, ignoring `missing`, which a rewritten table loses."""
    return any(_compared_fields(old)[place] != value for place, value in enumerate(_compared_fields(seen)))


def _compared_fields(schema: TableSchema) -> tuple[object, ...]:
    columns = tuple(column.model_copy(update={"missing": None}) for column in schema.columns)
    return (columns, schema.key, schema.epoch, schema.oid)


def next_version(found: Sequence[TableSchema], seen: TableSchema, pipeline: str) -> TableSchema:
    """Return the version after `found`: the schema `seen`, with dropped columns and old defaults carried over.

    Raises SchemaChangeError for a change that cannot be applied to stored and landed data. A version that begins a new
    epoch may have any change except of the key, since the new snapshot sends every row.
    """
    old = found[-1]
    _require_same_key(old, seen, pipeline)
    _require_storable(old, seen, pipeline)
    generation = [version for version in found if version.epoch == seen.epoch]
    faults = _unsupported_changes(generation, seen) if generation else []
    if faults:
        raise schema_change_error(pipeline, seen.table, faults)
    before = match_columns(old, seen)
    columns = tuple(
        column.model_copy(update={"missing": before[column.name].missing}) if column.name in before else column
        for column in seen.columns
    )
    current = {column.name.lower() for column in columns}
    history = {column.name.lower(): column for column in (*old.dropped, *old.columns)}
    dropped = tuple(column for name, column in history.items() if name not in current)
    return seen.model_copy(update={"version": old.version + 1, "columns": columns, "dropped": dropped})


def _require_same_key(old: TableSchema, seen: TableSchema, pipeline: str) -> None:
    """Raise SchemaChangeError if the primary key changed: not even a new snapshot can then match the stored rows."""
    why = (
        "and the lake identifies rows by the key. The lake is unchanged. To rebuild it, run "
        f"`cdc-lake reset {pipeline}`, then materialise the pipeline."
    )
    if old.key != seen.key:
        raise SchemaChangeError(
            f"Cannot capture the schema of {seen.table}: its primary key changed from ({', '.join(old.key)}) to "
            f"({', '.join(seen.key)}), {why}"
        )
    other = [name for name in seen.key if name not in match_columns(old, seen)]
    if other:
        raise SchemaChangeError(
            f"Cannot capture the schema of {seen.table}: column {other[0]} of its primary key was dropped and another "
            f"column has its name, {why}"
        )


def _require_storable(old: TableSchema, seen: TableSchema, pipeline: str) -> None:
    """Raise SchemaChangeError if a lake column's type changes to one that Hudi cannot promote it to."""
    held = {column.name.lower(): column.lake_type for column in (*old.columns, *old.dropped)}
    for column in seen.columns:
        kind = held.get(column.name.lower(), column.lake_type)
        if kind != column.lake_type and not _promotable(kind, column.lake_type):
            raise SchemaChangeError(
                f"Cannot change the type of column {column.name} of {seen.table}: it is {kind} in the lake, whose "
                f"files cannot be changed to {column.lake_type}. Nothing was changed. Rename the column at the source, "
                f"or rebuild the lake with `cdc-lake reset {pipeline}`."
            )


def _promotable(old: str, new: str) -> bool:
    one, other = old.partition("(")[0], new.partition("(")[0]
    if one == other == "decimal":
        (precision, scale), (wider, longer) = column_types.arguments(old), column_types.arguments(new)
        return longer >= scale and wider - longer >= precision - scale
    return other in _HUDI_PROMOTIONS.get(one, ())


def schema_change_error(pipeline: str, table: str, faults: Sequence[str]) -> SchemaChangeError:
    """Return the error for changes that only a new snapshot can apply."""
    return SchemaChangeError(
        f"the schema of {table} changed in a way that cannot be applied to stored data: {'; '.join(faults)}. Nothing "
        f"was changed. `cdc-lake resnapshot {pipeline}` reads the table again with its new schema."
    )


def describe_changes(old: TableSchema, new: TableSchema) -> list[str]:
    """Describe the changes between two versions, one phrase for each column."""
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
                phrases.append(f"{column.name} widened from {was.type} to {column.type}")
    phrases += [f"{column.name} dropped (kept as history)" for column in old.columns if column.name not in kept]
    return phrases


def _unsupported_changes(generation: Sequence[TableSchema], seen: TableSchema) -> list[str]:
    old = generation[-1]
    if None not in {old.oid, seen.oid} and old.oid != seen.oid:
        return ["the table was dropped and re-created, so that rows changed without an event"]
    before = match_columns(old, seen)
    faults = [
        f"column {column.name} changed from {was.type} to {column.type}, whose values do not follow from the old ones"
        for column in seen.columns
        if (was := before.get(column.name)) is not None and not is_widening(was, column)
    ]
    # Only the names of its fields show which version a record has.
    number_of: dict[str, int | None] = {}
    for version in generation:
        number_of |= {column.name.lower(): column.attnum for column in version.columns}
    faults += [
        f"column {column.name} has the name of an earlier column, so that older records are ambiguous"
        for column in seen.columns
        if None not in {column.attnum, number_of.get(column.name.lower(), column.attnum)}
        and number_of.get(column.name.lower(), column.attnum) != column.attnum
    ]
    return faults


def is_widening(old: Column, new: Column) -> bool:
    """Return whether the new column holds every value of the old one, and parses it from the same text in a record."""
    if (old.type, old.kind) == (new.type, new.kind):
        return True
    if old.type.endswith("[]") or new.type.endswith("[]"):
        return _element_widens(old, new)
    if old.kind == "enum":
        return new.kind == "enum" or new.base == "text"
    return new.kind == old.kind == "base" and new.base in _WIDENINGS.get(old.base, ()) and _arguments_widen(old, new)


def _arguments_widen(old: Column, new: Column) -> bool:
    if new.base == "numeric":
        return _numeric_widens(old, new)
    return _length_widens(old, new) if new.base in {"character varying", old.base} else True


def _element_widens(old: Column, new: Column) -> bool:
    if not (old.type.endswith("[]") and new.type.endswith("[]")):
        return False
    one, other = column_types.base(old.type[:-2]), column_types.base(new.type[:-2])
    return one in _INTEGERS and other in _INTEGERS and _INTEGERS.index(one) <= _INTEGERS.index(other)


def _numeric_widens(old: Column, new: Column) -> bool:
    if not new.arguments:
        return True
    precision, scale = (*new.arguments, 0)[:2]
    if old.base in _DIGITS:
        # As text, the value would need trailing zeros that the stored number does not have.
        return new.lake_type != "string" and precision - scale >= _DIGITS[old.base]
    if not old.arguments:
        return False
    before_precision, before_scale = (*old.arguments, 0)[:2]
    if "string" in {old.lake_type, new.lake_type} and scale != before_scale:
        return False
    return scale >= before_scale and precision - scale >= before_precision - before_scale


def _length_widens(old: Column, new: Column) -> bool:
    """Return whether the length or precision does not shrink and, for times, Debezium's unit stays the same."""
    if new.base == "character varying":
        room = 0 if old.base == new.base else _DIGITS.get(old.base, 0) + 1
        return not new.arguments or (
            new.arguments[0] >= (old.arguments[0] if old.arguments and old.base == new.base else room)
            and (old.base != new.base or bool(old.arguments))
        )
    before, after = (column.arguments[0] if column.arguments else 6 for column in (old, new))
    counted = old.base in {"timestamp without time zone", "time without time zone"}
    return after >= before and not (counted and (before <= 3) != (after <= 3))
