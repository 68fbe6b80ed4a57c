"""The schema of a source table, captured from PostgreSQL's catalog and kept beside the raw objects.

Here: columns, versions, and the lake's type for each PostgreSQL type. Not here: turning values into
those types (jobs/decode.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from cdc_lake.contract import names
from cdc_lake.contract.conditional import put_or_get
from cdc_lake.contract.errors import ContractError, UnsupportedTypeError
from cdc_lake.contract.store import ObjectStore

# The columns that Debezium's flattening adds (design, section 4), by their names in a record, and the
# lake's type of each. Hive's metastore folds names to lower case, so the lake's names are lower case.
EVENT_FIELDS = {
    "__op": "string",
    "__db": "string",
    "__schema": "string",
    "__table": "string",
    "__lsn": "bigint",
    "__txId": "bigint",
    "__snapshot": "string",
    "__source_ts_ms": "bigint",
    "__deleted": "boolean",
}

# format_type() of PostgreSQL → Hive/Spark type. What JSON can't carry exactly stays text.
_SIMPLE = {
    "smallint": "int",
    "integer": "int",
    "bigint": "bigint",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "text": "string",
    "character varying": "string",
    "character": "string",
    "bpchar": "string",
    "citext": "string",
    "uuid": "string",
    "json": "string",
    "jsonb": "string",
    "xml": "string",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamp",
    "time without time zone": "bigint",
    "time with time zone": "string",
    "interval": "string",
    "bytea": "binary",
    "inet": "string",
    "cidr": "string",
    "macaddr": "string",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE = re.compile(r"^(?P<base>[a-z ]+?)(?:\((?P<args>[-\d,]+)\))?(?P<rest>(?: [a-z ]+)?)(?P<array>(?:\[\])*)$")


class Column(BaseModel):
    """One column: its name, PostgreSQL type (as format_type() spells it) and whether NULL is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: str
    nullable: bool = True

    @property
    def base(self) -> str:
        """The type without its arguments: `timestamp(3) without time zone` → `timestamp without time zone`."""
        found = _TYPE.match(self.type)
        return self.type if found is None else found["base"] + found["rest"] + found["array"]

    @property
    def arguments(self) -> tuple[int, ...]:
        """The type's arguments: `numeric(6,2)` → (6, 2)."""
        found = _TYPE.match(self.type)
        return () if found is None or not found["args"] else tuple(map(int, found["args"].split(",")))

    @property
    def lake_type(self) -> str:
        """The column's type in the lake, as Hive spells it. Raises UnsupportedTypeError."""
        if self.base == "numeric":
            if not self.arguments:
                return "string"  # unbounded: no decimal type holds every value of it
            precision, scale = (*self.arguments, 0)[:2]
            return f"decimal({precision},{scale})" if precision <= 38 and 0 <= scale <= precision else "string"
        if self.base in _SIMPLE:
            return _SIMPLE[self.base]
        raise UnsupportedTypeError(
            f"column {self.name} has PostgreSQL type {self.type}, which has no mapping into the lake; leave the "
            "column out of the publication, or cast it in the source table"
        )


class TableSchema(BaseModel):
    """One version of a source table's schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    def lake_columns(self) -> list[tuple[str, str]]:
        """Names and Hive types of the lake table: the source's columns, the event's fields, the order."""
        own = [(column.name.lower(), column.lake_type) for column in self.columns]
        return [*own, *((name.lower(), kind) for name, kind in EVENT_FIELDS.items()), ("__order", "string")]


def versions(store: ObjectStore, pipeline: str, table: str) -> list[TableSchema]:
    """All captured versions, oldest first."""
    listed = store.scan(names.schema_prefix(pipeline, table))
    bodies = [store.get(item.key) for item in listed if item.key.endswith(".json")]
    return [TableSchema.model_validate_json(stored.body) for stored in bodies if stored is not None]


def latest(store: ObjectStore, pipeline: str, table: str) -> TableSchema:
    """The newest captured version. Raises ContractError where none was captured yet."""
    found = versions(store, pipeline, table)
    if not found:
        raise ContractError(
            f"no schema of {table} is captured yet: materialise {pipeline}/source/{table.rpartition('.')[2]} first"
        )
    return found[-1]


def capture(
    store: ObjectStore, pipeline: str, table: str, columns: Sequence[Column], key: Sequence[str]
) -> tuple[TableSchema, bool]:
    """Keep the table's schema as a new version if it differs from the newest one.

    Returns the schema and whether a version was added. Raises UnsupportedTypeError for a column whose name or
    type the lake can't hold, ContractError where another run captured another schema at the same moment.
    """
    found = versions(store, pipeline, table)
    number = found[-1].version + 1 if found else 1
    schema = TableSchema(version=number, table=table, columns=tuple(columns), key=tuple(key))
    _check_names(schema)
    for column in schema.columns:
        _ = column.lake_type
    if found and (found[-1].columns, found[-1].key) == (schema.columns, schema.key):
        return found[-1], False
    target = f"{names.schema_prefix(pipeline, table)}{number:06d}.json"
    body = schema.model_dump_json(indent=1).encode()
    if put_or_get(store, target, body).body != body:
        raise ContractError(f"another run captured version {number} of {table} just now: run it again")
    return schema, True


def _check_names(schema: TableSchema) -> None:
    """Whether every column has a name that Avro (in Hudi) and Hive can spell, and none has another one's."""
    added = {name for name, _ in schema.lake_columns()[len(schema.columns) :]}
    seen: set[str] = set()
    for column in schema.columns:
        folded = column.name.lower()
        fault = (
            "a name that the lake's formats can't spell (letters, digits and '_' only)"
            if not _NAME.fullmatch(column.name)
            else "the name of a column that the lake adds"
            if folded in added or folded.startswith("_hoodie_")
            else "the name of another column once Hive folds names to lower case"
            if folded in seen
            else None
        )
        if fault is not None:
            raise UnsupportedTypeError(
                f"column {column.name} of {schema.table} has {fault}; leave the column out of the publication, or "
                "rename it in the source table"
            )
        seen.add(folded)
