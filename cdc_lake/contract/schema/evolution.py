"""What may follow on a schema version without a new snapshot, and what is carried on from version to version.

A change of a table's columns writes no event to the WAL. It can be applied where the rows that the lake has tell what
they show afterwards; where they don't (a type whose values are spelled another way, a default that is another one for
each row), only a new snapshot can, and the change is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cdc_lake.contract.errors import SchemaChangeError
from cdc_lake.contract.schema import column_types

if TYPE_CHECKING:
    from cdc_lake.contract.schema.captured_schema import Column, TableSchema

# Values of the type on the left are the same, and Debezium spells them the same or so that the type on the right reads
# them, after ALTER TYPE to one on the right. Lengths and precisions are compared on top. Not real to double precision:
# PostgreSQL makes 0.10000000149011612 of a 0.1 that records told before, and a replay would tell 0.1 again; nor numeric
# to text: records tell 0.00000015 as 1.5E-7, which is no number's text in a column of texts.
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


# Types of the lake that a column of a Hudi table can be given, all of its rows rewritten. Hudi makes any other new type
# the old one again, as it would of a batch that is behind.
_HUDI_PROMOTIONS = {
    "int": {"bigint", "float", "double", "decimal", "string"},
    "bigint": {"double", "decimal", "string"},
    "float": {"double"},
    "boolean": {"string"},
}


def match_columns(old: TableSchema, new: TableSchema) -> dict[str, Column]:
    """The columns of `old` by the names that they have in `new`: the same number in the catalog is the same column."""
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
    """Whether what was seen is another schema than the newest version. What old rows show may be forgotten: a rewritten
    table no longer tells.
    """
    return any(_compared_parts(old)[place] != value for place, value in enumerate(_compared_parts(seen)))


def _compared_parts(schema: TableSchema) -> tuple[object, ...]:
    columns = tuple(column.model_copy(update={"missing": None}) for column in schema.columns)
    return (columns, schema.key, schema.epoch, schema.oid)


def next_version(found: Sequence[TableSchema], seen: TableSchema, pipeline: str) -> TableSchema:
    """The version after `found`: what was seen, with history and old defaults carried on.

    Raises SchemaChangeError for a change that can't be applied to what is stored and landed. A version that begins
    another epoch is free of that, but for the key: a new snapshot brings every row.
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
    """Make sure that the key is of the same columns.

    Raises SchemaChangeError: not even a new snapshot tells which row of the lake was which.
    """
    why = (
        f"rows of the lake are told apart by it. Nothing was changed: `cdc-lake reset {pipeline}` builds the lake anew"
    )
    if old.key != seen.key:
        raise SchemaChangeError(
            f"the primary key of {seen.table} changed from ({', '.join(old.key)}) to ({', '.join(seen.key)}): {why}"
        )
    other = [name for name in seen.key if name not in match_columns(old, seen)]
    if other:
        raise SchemaChangeError(
            f"column {other[0]} of the primary key of {seen.table} was dropped, and another one has its name: {why}"
        )


def _require_storable(old: TableSchema, seen: TableSchema, pipeline: str) -> None:
    """Make sure that each name that the lake has keeps its type there, or gets one that Hudi can promote it to.

    Raises SchemaChangeError: files of a table don't get another type, be every row of it new.
    """
    held = {column.name.lower(): column.lake_type for column in (*old.columns, *old.dropped)}
    for column in seen.columns:
        kind = held.get(column.name.lower(), column.lake_type)
        if kind != column.lake_type and not _promotable(kind, column.lake_type):
            raise SchemaChangeError(
                f"column {column.name} of {seen.table} is a {kind} in the lake, whose files can't be changed to "
                f"{column.lake_type}. Nothing was changed: give the column another name at the source, or let "
                f"`cdc-lake reset {pipeline}` build the lake anew"
            )


def _promotable(old: str, new: str) -> bool:
    one, other = old.partition("(")[0], new.partition("(")[0]
    if one == other == "decimal":
        (precision, scale), (wider, longer) = column_types.arguments(old), column_types.arguments(new)
        return longer >= scale and wider - longer >= precision - scale
    return other in _HUDI_PROMOTIONS.get(one, ())


def schema_change_error(pipeline: str, table: str, faults: Sequence[str]) -> SchemaChangeError:
    """The error of changes that only a new snapshot can apply."""
    return SchemaChangeError(
        f"the schema of {table} changed in a way that can't be applied to what is stored: {'; '.join(faults)}. Nothing "
        f"was changed: `cdc-lake resnapshot {pipeline}` reads the table anew with its new schema"
    )


def describe_changes(old: TableSchema, new: TableSchema) -> list[str]:
    """What changed from version to version, for people: one phrase a column."""
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
        return ["the table was dropped and made again, so that rows vanished and came without an event"]
    before = match_columns(old, seen)
    faults = [
        f"column {column.name} changed from {was.type} to {column.type}, whose values can't be told from the old ones"
        for column in seen.columns
        if (was := before.get(column.name)) is not None and not is_widening(was, column)
    ]
    # A record doesn't say of which version it is but by its fields' names.
    meant: dict[str, int | None] = {}
    for version in generation:
        meant |= {column.name.lower(): column.attnum for column in version.columns}
    faults += [
        f"column {column.name} has the name that another column had before, so that older records can't be told apart"
        for column in seen.columns
        if None not in {column.attnum, meant.get(column.name.lower(), column.attnum)}
        and meant.get(column.name.lower(), column.attnum) != column.attnum
    ]
    return faults


def is_widening(old: Column, new: Column) -> bool:
    """Whether every value of the old column is one of the new column's, and read from the same text in a record."""
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
        # Text would have to show zeros that the stored digits lack.
        return new.lake_type != "string" and precision - scale >= _DIGITS[old.base]
    if not old.arguments:
        return False
    before_precision, before_scale = (*old.arguments, 0)[:2]
    if "string" in {old.lake_type, new.lake_type} and scale != before_scale:
        return False
    return scale >= before_scale and precision - scale >= before_precision - before_scale


def _length_widens(old: Column, new: Column) -> bool:
    """Whether the length or precision is at least the old one, and, of times, in the same unit on the wire."""
    if new.base == "character varying":
        room = 0 if old.base == new.base else _DIGITS.get(old.base, 0) + 1
        return not new.arguments or (
            new.arguments[0] >= (old.arguments[0] if old.arguments and old.base == new.base else room)
            and (old.base != new.base or bool(old.arguments))
        )
    before, after = (column.arguments[0] if column.arguments else 6 for column in (old, new))
    counted = old.base in {"timestamp without time zone", "time without time zone"}
    return after >= before and not (counted and (before <= 3) != (after <= 3))
