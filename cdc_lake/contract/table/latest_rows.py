"""Build the SELECT, in Spark SQL, that returns the newest row of each key from a table of Parquet objects.

A Parquet target's view is this SELECT in Athena's SQL (pipeline/parquet_target), and verify runs it in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

import sqlglot
from sqlglot import exp

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.parquet_file import EPOCH, OFFSET, UNCHANGED, VERSION
from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, Column, TableSchema
from cdc_lake.contract.schema.evolution import match_columns
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position, order_sql

_CAN_WIDEN = ("boolean", "int", "bigint", "decimal", "float", "double")
"""Types of columns that can get a wider type; decimal has arguments."""
_MILLISECOND_DIGITS = 3
"""Debezium sends a timestamp with up to this many digits in milliseconds, others in microseconds."""
_ORDER = order_sql(f"cast(`{EPOCH}` AS STRING)", "`__snapshot`", "`__op`", "`__lsn`")


def sql(
    versions: Sequence[TableSchema], relation: str, boundary: str, *, deleted: bool = False, versioned: bool = True
) -> str:
    """Return the SELECT. With `deleted`, it also returns deleted rows, and the column `__deleted`.

    `versions` are the captured schemas, oldest first; the other columns are those of the lake. `boundary` is the
    position (event_order) of the first row of the newest complete snapshot: a key whose rows are all older is not in
    the source. Rows that occur twice are the same change, and only one of them is used. A value that PostgreSQL left
    out is taken from the newest earlier row that contains it; if no row contains it, it is NULL.

    Columns are cast to their types and, if the rows are `versioned`, those of later versions are left out: after a
    change of the schema, the SELECT returns the same rows and types whether or not the table already has its new
    columns. Raises ContractError for a default that cannot be written in SQL.
    """
    newest = versions[-1]
    columns = {column.name.lower(): _ColumnSql(column, versions) for column in newest.columns}
    others = [column.name.lower() for column in newest.dropped] + [name.lower() for name in EVENT_FIELDS]
    key = ", ".join(f"`{name.lower()}`" for name in newest.key)
    order = f"PARTITION BY {key} ORDER BY `{ORDER_COLUMN}` DESC, `{OFFSET}` DESC"
    values = [f"{each.value} AS `{name}`" for name, each in columns.items()]
    flags = [f"{each.lacks} AS `{_lacks(name)}`" for name, each in columns.items() if each.can_lack(newest)]
    filled = [_filled(name, order) if each.can_lack(newest) else f"`{name}`" for name, each in columns.items()]
    kept = [f"`{name}`" for name in others]
    shown = [*columns, *(name for name in others if deleted or name != "__deleted"), ORDER_COLUMN]
    read = f"`{EPOCH}` >= {Position.decode(boundary).epoch}"
    if versioned:
        read += f" AND `{VERSION}` <= {newest.version}"
    conditions = ["`__rank` = 1", f"`{ORDER_COLUMN}` >= '{boundary}'", *([] if deleted else ["NOT `__deleted`"])]
    return (
        f"WITH events AS (SELECT {', '.join([*values, *kept, *flags, f'`{OFFSET}`'])}, {_ORDER} AS `{ORDER_COLUMN}` "  # noqa: S608 - checked identifiers
        f"FROM {relation} WHERE {read}), "
        f"ranked AS (SELECT {', '.join([*filled, *kept])}, `{ORDER_COLUMN}`, row_number() OVER ({order}) AS `__rank` "
        "FROM events) "
        f"SELECT {', '.join(f'`{name}`' for name in shown)} FROM ranked WHERE {' AND '.join(conditions)}"
    )


def for_athena(select: str) -> str:
    """Return the SELECT in Athena's SQL.

    Spark's CAST returns NULL for a value that does not fit, as TRY_CAST does, and Athena does not use a condition on a
    TRY_CAST to limit the files that it reads. All values fit, so that CAST takes its place.
    """
    tree = sqlglot.parse_one(select, read="spark")
    for cast in list(tree.find_all(exp.TryCast)):
        cast.replace(exp.Cast(**cast.args))
    return tree.sql(dialect="trino")


def _lacks(name: str) -> str:
    return f"__lacks_{name}"


def _filled(name: str, order: str) -> str:
    """Return the expression that takes an omitted value from the newest earlier row that contains it."""
    # The array distinguishes a NULL value, array(NULL), from an omitted one, NULL.
    held = f"CASE WHEN NOT `{_lacks(name)}` THEN array(`{name}`) END"
    earlier = f"first_value({held}) IGNORE NULLS OVER ({order} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
    return f"CASE WHEN `{_lacks(name)}` THEN element_at({earlier}, 1) ELSE `{name}` END AS `{name}`"


class _ColumnSql:
    """Expressions that read a column of the newest schema from rows of all versions.

    `value` is the column's value. `lacks` is true for a row from which PostgreSQL left the value out.
    """

    def __init__(self, column: Column, versions: Sequence[TableSchema]) -> None:
        self.column = column
        names = list(_names(column, versions))
        own = f"`{column.name.lower()}`"
        if column.lake_type.partition("(")[0] in _CAN_WIDEN:
            own = f"cast({own} AS {column.lake_type})"
        steps = []
        for version, name in names[:-1]:
            if name is None:
                before = "NULL" if column.missing is None else _literal(column, versions[-1].table)
            else:
                before = f"`{name}`"
            steps.append((version, f"cast({before} AS {column.lake_type})"))
        if all(name == column.name.lower() or (name is None and column.missing is None) for _, name in names):
            self.value = own
        else:
            cases = " ".join(f"WHEN `{VERSION}` <= {version} THEN {value}" for version, value in steps)
            self.value = f"CASE {cases} ELSE {own} END"
        known = dict.fromkeys(name for _, name in names if name is not None)
        held = " OR ".join(f"array_contains(`{UNCHANGED}`, '{name}')" for name in known)
        self.lacks = f"coalesce({held}, false)"

    def can_lack(self, newest: TableSchema) -> bool:
        """Return whether PostgreSQL can leave the value out: it can be stored out of line (TOAST), not in the key."""
        kind = self.column.lake_type
        toastable = kind in {"string", "binary"} or kind.startswith("decimal")
        return toastable and self.column.name not in newest.key


def _names(column: Column, versions: Sequence[TableSchema]) -> Iterator[tuple[int, str | None]]:
    """Yield each version with the column's name in it, None if it does not have the column."""
    for version in versions:
        was = match_columns(version, versions[-1]).get(column.name)
        yield version.version, None if was is None else was.name.lower()


def _literal(column: Column, table: str) -> str:
    """Return the value of rows that are older than the column; see Column.missing."""
    text = str(column.missing)
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    match column.lake_type:
        case "int" | "bigint" | "float" | "double" | "boolean":
            return quoted
        case "date":
            return f"'{date(1970, 1, 1) + timedelta(days=int(text))}'"
        case "string" if column.base != "bit":
            return quoted
        case "timestamp" if (at := _time(column, text)) is not None:
            return f"'{at:%Y-%m-%d %H:%M:%S.%f}'"
        case kind if kind.startswith("decimal"):
            return quoted
    raise ContractError(
        f"Cannot define the view of the latest rows of {table}: the default of the new column {column.name} "
        f"{column.type} cannot be written in SQL. Run `cdc-lake reset` for its pipeline, which reads every row again."
    )


def _time(column: Column, text: str) -> datetime | None:
    """Return a timestamp in Debezium's text form, in UTC without a zone; None if Python's years do not reach it."""
    try:
        if column.base == "timestamp with time zone":
            return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
        in_milliseconds = bool(column.arguments) and column.arguments[0] <= _MILLISECOND_DIGITS
        return datetime(1970, 1, 1) + timedelta(microseconds=int(text) * (1000 if in_milliseconds else 1))
    except (ValueError, OverflowError):
        return None
