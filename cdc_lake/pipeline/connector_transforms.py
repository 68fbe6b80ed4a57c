"""The settings of a source connector that apply a pipeline's transforms.

Debezium masks and hashes values by column, in the snapshot and in the stream. Kafka Connect's own transforms cast,
rename and insert fields of the flattened record, and set its key. Both are applied before a record is written to Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema.transforms import Masking
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.connect.config_template import column_pattern, render
from resources.postgres.table_columns import ColumnInfo


def with_transforms(
    pipeline: Pipeline, postgres: SourcePostgres, config: Mapping[str, str], connectors: Path
) -> dict[str, str]:
    """Return the configuration with the settings of the pipeline's transforms, from files in `connectors`.

    Raises ResourceError if a column is hashed and the deployment has no salt.
    """
    settings = dict(config)
    names: list[str] = []
    for masking, columns in _columns_by_masking(pipeline).items():
        values = {"columns": column_pattern(columns)}
        if masking.algorithm is None:
            settings |= render(connectors / "columns" / "masked.json", values | {"asterisks": str(masking.asterisks)})
        else:
            values |= {"algorithm": masking.algorithm, "salt": postgres.salt()}
            settings |= render(connectors / "columns" / "hashed.json", values)
    for file, values in _record_transforms(pipeline):
        names.append(f"table{len(names)}")
        settings |= render(connectors / "transforms" / file, values | {"name": names[-1]})
    for setting in ("transforms", "predicates") if names else ():
        settings[setting] = ",".join([*([config[setting]] if setting in config else []), *names])
    return settings


def require_nulls_kept(table: PipelineTable, columns: list[ColumnInfo]) -> None:
    """Raise ContractError for a column in which Kafka Connect before version 4 would write the default instead of NULL.

    Cast, InsertField and ReplaceField of Kafka Connect 3.7, the newest version of MSK Connect, copy all fields of a
    record with Struct.get(), which replaces NULL by the column's default. Only version 4 has replace.null.with.default.
    """
    replaced = [column.name for column in columns if column.nullable and column.default is not None]
    if replaced and table.source_transforms.copies_records:
        raise ContractError(
            f"Cannot cast, rename or insert columns of table {table.source_table} on MSK Connect: column {replaced[0]} "
            "has a default and may be NULL, and Kafka Connect 3.7 would write the default instead of NULL. Make the "
            "column NOT NULL, drop its default, exclude it, or apply Cast, InsertField and ReplaceField at: landing."
        )


def _columns_by_masking(pipeline: Pipeline) -> dict[Masking, list[tuple[str, str, str]]]:
    found: dict[Masking, list[tuple[str, str, str]]] = {}
    for table in pipeline.tables:
        for name, masking in table.source_transforms.masked.items():
            found.setdefault(masking, []).append((pipeline.spec.source.schema_, table.name, name))
    return found


def _record_transforms(pipeline: Pipeline) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a file and its values for each transform: Connect applies them in this order."""
    inserted: dict[tuple[str, str], list[PipelineTable]] = {}
    for table in pipeline.tables:
        transforms, topics = table.source_transforms, {"topics": _topics([table])}
        if transforms.cast:
            yield "cast.json", {"spec": _pairs(transforms.cast), **topics}
        if transforms.renamed:
            yield "replace-field.json", {"renames": _pairs(transforms.renamed), **topics}
        if (key := table.record_key) is not None:
            if not key.alone or not set(key.fields) <= set(table.spec.key):
                yield "value-to-key.json", {"fields": ",".join(key.fields), **topics}
            if key.alone:
                yield "extract-key.json", {"field": key.fields[0], **topics}
        for field in transforms.inserted.items():
            inserted.setdefault(field, []).append(table)
    for (name, value), tables in inserted.items():
        yield "insert-field.json", {"field": name, "value": value, "topics": _topics(tables)}


def _pairs(mapping: Mapping[str, str]) -> str:
    return ",".join(f"{name}:{value}" for name, value in mapping.items())


def _topics(tables: list[PipelineTable]) -> str:
    """Return a regular expression for the tables' topics: the transforms do not apply to heartbeats."""
    return "|".join(re.escape(table.topic) for table in tables)
