"""Table schemas declared as text, and their recorded versions."""

from __future__ import annotations

from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.captured_schema import EXCLUDED, Column, OmittedColumn, TableSchema
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE

TABLE = "public.orders"


def columns(*declared: str) -> tuple[Column, ...]:
    """Parse columns from `number name type = default of older rows`."""
    parsed = []
    for text in declared:
        before, _, missing = text.partition(" = ")
        number, name, kind = before.split(" ", 2)
        parsed.append(Column(name=name, type=kind, attnum=int(number), missing=missing or None))
    return tuple(parsed)


def catalog_schema(*declared: str, key: str = "id", oid: int = 1, epoch: int = 0) -> TableSchema:
    """Return the schema that the source's catalog shows."""
    return TableSchema(version=0, table=TABLE, columns=columns(*declared), key=(key,), oid=oid, filenode=1, epoch=epoch)


ID = "1 id integer"
BASE = catalog_schema(ID, "2 note character varying(10)", "3 qty integer")


def history(*schemas: TableSchema) -> list[TableSchema]:
    """Record these schemas in order; return all versions."""
    store = MemoryStore()
    for schema in schemas:
        captured_schema.record(store, PIPELINE, schema)
    return captured_schema.versions(store, PIPELINE, TABLE)


def lake(version: TableSchema) -> dict[str, str]:
    """Return name and type of the lake's columns without the event fields."""
    return {name: kind for name, kind in version.lake_columns() if not name.startswith("__")}


def declarations(version: TableSchema) -> list[str]:
    """Return a version's columns in the notation of columns()."""
    return [f"{column.attnum} {column.name} {column.type}" for column in version.columns]


def omitting(schema: TableSchema, name: str, attnum: int, reason: str = EXCLUDED) -> TableSchema:
    """Return a schema without this column, which it omits."""
    kept = tuple(column for column in schema.columns if column.name != name)
    return schema.model_copy(
        update={"columns": kept, "omitted": (OmittedColumn(name=name, reason=reason, attnum=attnum),)}
    )
