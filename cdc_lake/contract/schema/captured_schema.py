"""The schema of a source table, captured from PostgreSQL's catalog and stored in the bucket."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from cdc_lake.contract.asset_names import asset_name
from cdc_lake.contract.errors import ContractError, UnsupportedTypeError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.schema import column_types, evolution
from cdc_lake.contract.schema.transforms import Masking

# The fields that Debezium's flattening adds to a record, and the lake type of each. Hive's metastore folds names to
# lower case, so the lake's names are lower case.
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
    that are older than the column, in Debezium's text form; None means NULL. The pipeline's transforms set the other
    fields: `source` is the name at the source if that differs, `masked` is how values are hidden, `inserted` is the
    constant value of a column that is not in the source, and `uncast` is the type at the source of a column that is
    cast to `type`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: str
    nullable: bool = True
    kind: column_types.TypeKind = "base"
    attnum: int | None = None
    missing: str | None = None
    source: str | None = None
    masked: Masking | None = None
    inserted: str | None = None
    uncast: str | None = None

    @property
    def hashed(self) -> bool:
        """Whether the values are replaced by their hashes."""
        return self.masked is not None and self.masked.algorithm is not None

    @property
    def source_name(self) -> str:
        """The column's name at the source."""
        return self.source or self.name

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
            raise _unsupported_type_error(self)
        return found


EXCLUDED = "exclude_columns"
"""The reason of a column that the YAML's exclude_columns omits; all other reasons are found automatically."""


class OmittedColumn(BaseModel):
    """A column of the source that is not captured; `reason` is a short phrase.

    `streamed` is false for a generated column that PostgreSQL does not publish.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    reason: str
    attnum: int | None = None
    streamed: bool = True

    @property
    def excluded(self) -> bool:
        """Whether the YAML's exclude_columns names the column."""
        return self.reason == EXCLUDED


class TableSchema(BaseModel):
    """One version of a source table's schema.

    `dropped` are columns of earlier versions, which the lake keeps as history. `omitted` are columns of the source that
    are not captured. `oid` and `filenode` identify the table and its file. `epoch` is the first source epoch of the
    version: if it is greater than that of the previous version, a resnapshot took place between the two.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    dropped: tuple[Column, ...] = ()
    omitted: tuple[OmittedColumn, ...] = ()
    oid: int | None = None
    filenode: int | None = None
    epoch: int = 0

    @property
    def allows_full_replica_identity(self) -> bool:
        """Whether the replica identity can be FULL, so that changes contain the whole old row.

        PostgreSQL 18 rejects UPDATE and DELETE of a published table whose replica identity has a column that is not
        published.
        """
        return all(column.streamed for column in self.omitted)

    @property
    def has_hashes(self) -> bool:
        """Whether a column is hashed."""
        return any(column.hashed for column in self.columns)

    @property
    def source_columns(self) -> tuple[Column, ...]:
        """The columns whose values come from the source."""
        return tuple(column for column in self.columns if column.inserted is None)

    def lake_columns(self) -> list[tuple[str, str]]:
        """Return name and Hive type of each column: columns, dropped columns, EVENT_FIELDS, and `__order`."""
        own = [(column.name.lower(), column.lake_type) for column in (*self.columns, *self.dropped)]
        return [*own, *((name.lower(), kind) for name, kind in EVENT_FIELDS.items()), ("__order", "string")]


def versions(store: ObjectStore, pipeline: str, table: str) -> list[TableSchema]:
    """Return all captured versions, oldest first."""
    listed = store.scan(object_names.schema_prefix(pipeline, table))
    bodies = [store.get(item.key) for item in listed if item.key.endswith(".json")]
    return [TableSchema.model_validate_json(stored.body) for stored in bodies if stored is not None]


def latest(store: ObjectStore, pipeline: str, table: str) -> TableSchema:
    """Return the newest captured version. Raises ContractError if no version is captured."""
    return require_versions(store, pipeline, table)[-1]


def require_versions(store: ObjectStore, pipeline: str, table: str) -> list[TableSchema]:
    """Return all captured versions, oldest first. Raises ContractError if no version is captured."""
    found = versions(store, pipeline, table)
    if not found:
        raise ContractError(
            f"Cannot read the schema of {table}: no version is captured yet. Materialise asset "
            f"{asset_name(pipeline, 'source', table.rpartition('.')[2])}."
        )
    return found


def record(store: ObjectStore, pipeline: str, seen: TableSchema) -> tuple[TableSchema, bool]:
    """Store `seen` as the next version if it differs from the newest one.

    The next version contains the dropped columns of earlier versions. Returns the newest schema and whether a version
    was added. Raises UnsupportedTypeError for a column whose name or type the lake cannot hold, SchemaChangeError for a
    change that cannot be applied, ContractError if another run captured another schema at the same time.
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
        raise ContractError(
            f"Cannot store version {schema.version} of the schema of {schema.table}: another run stored a different "
            "one at the same moment. Run this again."
        )
    return schema, True


def require_valid_columns(schema: TableSchema) -> None:
    """Raise UnsupportedTypeError if the lake cannot hold a column.

    Each column must have a type that column_types maps, and a unique name that is valid in Avro (Hudi) and Hive.
    """
    seen: set[str] = set()
    for column in schema.columns:
        if column_types.lake_type(column.type, column.kind) is None:
            raise _unsupported_type_error(column, schema.table)
        folded = column.name.lower()
        fault = name_fault(column.name) or (
            "it has the name of another column once Hive folds names to lower case" if folded in seen else None
        )
        if fault is not None:
            raise UnsupportedTypeError(
                f"Cannot capture column {column.name} of {schema.table}: {fault}. Rename it in the source table, or "
                "name it in exclude_columns."
            )
        seen.add(folded)


def name_fault(name: str) -> str | None:
    """Return why the lake cannot have a column of this name; None if it can."""
    if not _NAME.fullmatch(name):
        return "its name is not valid in the lake's formats (letters, digits and '_', not starting with a digit)"
    if name.lower().startswith(("__", "_hoodie_")):
        return "its name begins with '__' or '_hoodie_', as those of the columns that the lake adds"
    return None


def _unsupported_type_error(column: Column, table: str | None = None) -> UnsupportedTypeError:
    """Return the error for a column whose PostgreSQL type has no lake type."""
    name = column.name if table is None else f"{column.name} of {table}"
    return UnsupportedTypeError(
        f"Cannot capture column {name}: the lake has no type for PostgreSQL's {column.type}. Change the type "
        "(docs/reference/types.md), or name the column in exclude_columns."
    )
