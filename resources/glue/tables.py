"""Table definitions of the Glue catalog, as dataclasses that are compared by value."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import unquote

HUDI_INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
HUDI_MERGING_INPUT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
JSON_SERDE = "org.openx.data.jsonserde.JsonSerDe"
PARQUET_INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
PARQUET_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
PARQUET_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"

HUDI_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)

_BASE_FILES_ONLY = "hoodie.query.as.ro.table"
# Spark's limit for a table parameter's value: the default of spark.sql.sources.schemaStringLengthThreshold.
_SCHEMA_PART = 4000
_TRINO_VIEW = re.compile(r"/\* Presto View: (?P<view>[A-Za-z0-9+/=]+) \*/")
# Parameters that engines set when they write; not part of a definition.
_SET_BY_ENGINES = frozenset({"transient_lastDdlTime"})


@dataclass(frozen=True)
class GlueColumn:
    """A column: name, Hive type (`decimal(6,2)`, `string`, `timestamp`, …) and comment."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class TableDefinition:
    """A table of the catalog.

    Raises:
        ValueError: a database or table name that is empty or that Glue would change, or a duplicate column.
    """

    database: str
    name: str
    location: str
    columns: tuple[GlueColumn, ...]
    partition_keys: tuple[GlueColumn, ...] = ()
    input_format: str = ""
    output_format: str = ""
    serde: str = ""
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    table_type: str = "EXTERNAL_TABLE"

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid name or a duplicate column."""
        for what, name in (("database", self.database), ("table", self.name)):
            if not name:
                raise ValueError(f"Cannot define table {self.full_name!r}: the name of the {what} is empty. Set it.")
            if name != name.lower():
                raise ValueError(
                    f"Cannot define table {self.full_name!r}: the name of the {what} has upper-case letters, and Glue "
                    f"stores names in lower case. Use {name.lower()!r}."
                )
        names = [each.name.lower() for each in (*self.columns, *self.partition_keys)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"Cannot define table {self.database}.{self.name}: more than one column is called {', '.join(twice)} "
                "(Glue ignores case). Rename one of them."
            )

    @property
    def full_name(self) -> str:
        """`database.table`."""
        return f"{self.database}.{self.name}"

    def to_input(self) -> dict[str, Any]:
        """Return Glue's TableInput."""
        return {
            "Name": self.name,
            "TableType": self.table_type,
            "Parameters": dict(self.parameters),
            "PartitionKeys": [_column_to_glue(each) for each in self.partition_keys],
            "StorageDescriptor": {
                "Location": self.location,
                "Columns": [_column_to_glue(each) for each in self.columns],
                "InputFormat": self.input_format,
                "OutputFormat": self.output_format,
                "SerdeInfo": {
                    "SerializationLibrary": self.serde,
                    "Parameters": dict(self.serde_parameters),
                },
            },
        }

    def partition_input(self, folder: str, location: str | None = None) -> dict[str, Any]:
        """Return Glue's PartitionInput for the partition in a folder below the table's, or at another location."""
        storage = self.to_input()["StorageDescriptor"]
        return {
            "Values": partition_values(folder),
            "StorageDescriptor": {**storage, "Location": location or f"{self.location}/{folder}"},
        }

    @classmethod
    def from_glue(cls, table: Mapping[str, Any]) -> TableDefinition:
        """Return the definition for a Table of Glue's API; a view has no location and no formats."""
        storage = table.get("StorageDescriptor") or {}
        serde = storage.get("SerdeInfo") or {}
        parameters = table.get("Parameters") or {}
        return cls(
            database=table["DatabaseName"],
            name=table["Name"],
            location=storage.get("Location") or "",
            columns=_columns(storage.get("Columns")),
            partition_keys=_columns(table.get("PartitionKeys")),
            input_format=storage.get("InputFormat") or "",
            output_format=storage.get("OutputFormat") or "",
            serde=serde.get("SerializationLibrary") or "",
            serde_parameters=serde.get("Parameters") or {},
            parameters={key: value for key, value in parameters.items() if key not in _SET_BY_ENGINES},
            table_type=table.get("TableType") or "",
        )


def view_sql(table: Mapping[str, Any]) -> str:
    """Return the SELECT of a view, for a Table of Glue's API; empty for a table.

    Athena and Trino store a view's definition as JSON in base64 (`ViewReaderUtil` in Trino's Hive connector). The text
    of other engines' views is returned as it is.
    """
    text = str(table.get("ViewOriginalText") or "")
    encoded = _TRINO_VIEW.fullmatch(text)
    return str(json.loads(b64decode(encoded["view"]))["originalSql"]) if encoded else text


def partition_values(folder: str) -> list[str]:
    """Return the partition values in a Hive-style folder name: `1` and `x/y` for `a=1/b=x%2Fy`."""
    return [unquote(part.partition("=")[2]) for part in folder.split("/")]


def hudi_table(
    database: str,
    name: str,
    location: str,
    columns: Sequence[GlueColumn],
    *,
    partition_keys: Sequence[GlueColumn] = (),
    spark_schema: str | None = None,
    comment: str = "",
) -> TableDefinition:
    """Return the definition of a copy-on-write Hudi table, as Hudi's own catalog sync writes it.

    merge_on_read() derives the two tables of a merge-on-read table from the result.

    Athena, Trino and Hive use the input and output formats, Spark uses the parameters `spark.sql.sources.*`. Hudi's
    five meta columns precede `columns`, which are in the order of the table's schema and without the partition keys.

    Args:
        database: the Glue database, in lower case.
        name: the table's name in the catalog, in lower case.
        location: the base path; an s3a:// URI is written as s3://, which all engines support.
        columns: name, Hive type and comment of each column.
        partition_keys: the columns whose values are folder names.
        spark_schema: the table's schema as Spark's JSON with all columns in order, for Spark with this catalog.
        comment: a description of the table.
    """
    parameters = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "hudi"}
    if comment:
        parameters["comment"] = comment
    if spark_schema is not None:
        parameters |= _spark_schema(spark_schema, partition_keys)
    base = "s3://" + location.removeprefix("s3a://") if location.startswith("s3a://") else location
    return TableDefinition(
        database=database,
        name=name,
        location=base.rstrip("/"),
        columns=(*(GlueColumn(each, "string") for each in HUDI_META_COLUMNS), *columns),
        partition_keys=tuple(partition_keys),
        input_format=HUDI_INPUT,
        output_format=PARQUET_OUTPUT,
        serde=PARQUET_SERDE,
        serde_parameters={
            "path": base.rstrip("/"),
            "serialization.format": "1",
            _BASE_FILES_ONLY: "false",
        },
        parameters=parameters,
    )


def external_table(
    database: str,
    name: str,
    location: str,
    columns: Sequence[GlueColumn],
    *,
    file_format: Literal["parquet", "json"],
    partition_keys: Sequence[GlueColumn] = (),
    comment: str = "",
) -> TableDefinition:
    """Return the definition of an external table of Parquet or JSON files; readers match its columns by name.

    A JSON file has an object on each line. Athena, Trino and Hive read it with the SerDe of OpenX, which returns the
    JSON text of a value whose column is a string.
    """
    formats = {
        "parquet": (PARQUET_INPUT, PARQUET_OUTPUT, PARQUET_SERDE),
        "json": (TEXT_INPUT, TEXT_OUTPUT, JSON_SERDE),
    }
    input_format, output_format, serde = formats[file_format]
    return TableDefinition(
        database=database,
        name=name,
        location=location,
        columns=tuple(columns),
        partition_keys=tuple(partition_keys),
        input_format=input_format,
        output_format=output_format,
        serde=serde,
        serde_parameters={"serialization.format": "1"},
        parameters={"EXTERNAL": "TRUE", "classification": file_format, **({"comment": comment} if comment else {})},
    )


def merge_on_read(table: TableDefinition) -> tuple[TableDefinition, TableDefinition]:
    """Return the two catalog tables of a merge-on-read table, named as in Hudi's own catalog sync.

    `<name>_ro` reads base files only: it is fast and shows the state of the last compaction. `<name>_rt` merges the log
    files when it is read, and shows every commit. Engines without Hudi's merging reader (Trino) read the base files for
    both.

    Args:
        table: the result of hudi_table(); location, columns and partition keys are the same for both.
    """
    compacted = {**table.serde_parameters, _BASE_FILES_ONLY: "true"}
    return (
        replace(table, name=f"{table.name}_ro", serde_parameters=compacted),
        replace(table, name=f"{table.name}_rt", input_format=HUDI_MERGING_INPUT),
    )


def _spark_schema(schema: str, partition_keys: Sequence[GlueColumn]) -> dict[str, str]:
    prefix = "spark.sql.sources.schema"
    parts = [schema[start : start + _SCHEMA_PART] for start in range(0, len(schema), _SCHEMA_PART)]
    found = {f"{prefix}.numParts": str(len(parts))}
    found |= {f"{prefix}.part.{index}": part for index, part in enumerate(parts)}
    if partition_keys:
        found[f"{prefix}.numPartCols"] = str(len(partition_keys))
        found |= {f"{prefix}.partCol.{index}": each.name for index, each in enumerate(partition_keys)}
    return found


def _column_to_glue(column: GlueColumn) -> dict[str, str]:
    found = {"Name": column.name, "Type": column.type}
    if column.comment:
        found["Comment"] = column.comment
    return found


def _columns(found: Sequence[Mapping[str, Any]] | None) -> tuple[GlueColumn, ...]:
    return tuple(GlueColumn(each["Name"], each.get("Type") or "", each.get("Comment") or "") for each in found or ())
