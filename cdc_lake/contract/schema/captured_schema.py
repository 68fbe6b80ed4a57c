"""The schema of a source table, captured from PostgreSQL's catalog and stored beside the raw objects."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from cdc_lake.contract.errors import ContractError, UnsupportedTypeError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.schema import column_types, evolution

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

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Column(BaseModel):
    """One column: its name, PostgreSQL type (domains resolved, as format_type() writes it), whether NULL is allowed.

    `attnum` is the column's number in the catalog, which renaming and ALTER TYPE keep. `missing` is the value in rows
    that are older than the column, in Debezium's text form; None means NULL.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: str
    nullable: bool = True
    kind: column_types.TypeKind = "base"
    attnum: int | None = None
    missing: str | None = None

    @property
    def base(self) -> str:
        """The type without its arguments: `timestamp(3) without time zone` → `timestamp without time zone`."""
        return column_types.base(self.type)

    @property
    def arguments(self) -> tuple[int, ...]:
        """The type's arguments: `numeric(6,2)` → (6, 2)."""
        return column_types.arguments(self.type)

    @property
    def lake_type(self) -> str:
        """The column's type in the lake, as Hive spells it. Raises UnsupportedTypeError."""
        found = column_types.lake_type(self.type, self.kind)
        if found is None:
            raise UnsupportedTypeError(
                f"column {self.name} has PostgreSQL type {self.type}, which has no mapping into the lake. Change the "
                "type (docs/reference/types.md), drop the column, or move it to a table that is not captured."
            )
        return found


class TableSchema(BaseModel):
    """One version of a source table's schema.

    `dropped` are columns of earlier versions, which the lake keeps as history. `oid` and `filenode` identify the table
    and its file. `epoch` is the first source epoch of the version: if it is greater than the previous version's, a
    resnapshot took place between the two.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    dropped: tuple[Column, ...] = ()
    oid: int | None = None
    filenode: int | None = None
    epoch: int = 0

    def lake_columns(self) -> list[tuple[str, str]]:
        """Names and Hive types of the lake table: source columns, dropped columns, EVENT_FIELDS, and ORDER_COLUMN."""
        own = [(column.name.lower(), column.lake_type) for column in (*self.columns, *self.dropped)]
        return [*own, *((name.lower(), kind) for name, kind in EVENT_FIELDS.items()), ("__order", "string")]


def versions(store: ObjectStore, pipeline: str, table: str) -> list[TableSchema]:
    """Return all captured versions, oldest first."""
    listed = store.scan(object_names.schema_prefix(pipeline, table))
    bodies = [store.get(item.key) for item in listed if item.key.endswith(".json")]
    return [TableSchema.model_validate_json(stored.body) for stored in bodies if stored is not None]


def latest(store: ObjectStore, pipeline: str, table: str) -> TableSchema:
    """Return the newest captured version. Raises ContractError where there is none."""
    return require_versions(store, pipeline, table)[-1]


def require_versions(store: ObjectStore, pipeline: str, table: str) -> list[TableSchema]:
    """Return all captured versions, oldest first. Raises ContractError where there is none."""
    found = versions(store, pipeline, table)
    if not found:
        raise ContractError(
            f"no schema of {table} is captured yet: materialise {pipeline}/source/{table.rpartition('.')[2]} first"
        )
    return found


def capture(
    store: ObjectStore, pipeline: str, table: str, columns: Sequence[Column], key: Sequence[str]
) -> tuple[TableSchema, bool]:
    """Store the table's schema as a new version if it differs from the newest one; see record()."""
    return record(store, pipeline, TableSchema(version=0, table=table, columns=tuple(columns), key=tuple(key)))


def record(store: ObjectStore, pipeline: str, seen: TableSchema) -> tuple[TableSchema, bool]:
    """Store `seen` as a new version, with version number and history, if it differs from the newest one.

    Returns the newest schema and whether a version was added. Raises UnsupportedTypeError for a column whose name or
    type the lake cannot hold, SchemaChangeError for a change that cannot be applied, ContractError where another run
    captured another schema at the same time.
    """
    found = versions(store, pipeline, seen.table)
    if not found:
        schema = seen.model_copy(update={"version": 1})
        require_valid_columns(schema)
    else:
        # A run that started before the last resnapshot has an older epoch.
        seen = seen.model_copy(update={"epoch": max(seen.epoch, found[-1].epoch)})
        if not evolution.differs(found[-1], seen):
            return found[-1], False
        require_valid_columns(seen)
        schema = evolution.next_version(found, seen, pipeline)
        require_valid_columns(schema)
    target = f"{object_names.schema_prefix(pipeline, schema.table)}{schema.version:06d}.json"
    body = schema.model_dump_json(indent=1).encode()
    if put_or_get(store, target, body).body != body:
        raise ContractError(f"another run captured version {schema.version} of {schema.table} just now: run it again")
    return schema, True


def require_valid_columns(schema: TableSchema) -> None:
    """Check that the lake can hold every column: its type, and a name that is valid in Avro (Hudi) and Hive.

    Raises UnsupportedTypeError that names the column.
    """
    seen: set[str] = set()
    for column in schema.columns:
        _ = column.lake_type
        folded = column.name.lower()
        fault = (
            "a name that the lake's formats can't spell (letters, digits and '_' only)"
            if not _NAME.fullmatch(column.name)
            else "the name of a column that the lake adds"
            if folded.startswith(("__", "_hoodie_"))
            else "the name of another column once Hive folds names to lower case"
            if folded in seen
            else None
        )
        if fault is not None:
            raise UnsupportedTypeError(
                f"column {column.name} of {schema.table} has {fault}; rename it in the source table, or move "
                "it to a table that is not captured"
            )
        seen.add(folded)
