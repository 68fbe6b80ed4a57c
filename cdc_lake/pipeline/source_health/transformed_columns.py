"""Apply the transforms of a pipeline to the columns of a table's captured schema.

The connector's configuration is checked by the same rules: a column that Debezium cannot mask would arrive in clear
text without an error (docs/decisions/0052-transforms.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema import column_types
from cdc_lake.contract.schema.captured_schema import Column, OmittedColumn, TableSchema
from cdc_lake.contract.schema.transforms import CASTS
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.postgres.polling import QueryColumn
from resources.postgres.table_columns import ColumnInfo

CHARACTER_TYPES = ("text", "character varying")
"""The types that can be masked. Debezium selects columns to mask by their JDBC type, which is another one for citext, a
domain or an enum. The blanks at the end of a character(n) differ between snapshot and stream."""


def require_transformable(
    table: PipelineTable, columns: Sequence[ColumnInfo | QueryColumn], omitted: Sequence[OmittedColumn]
) -> None:
    """Raise ContractError if the pipeline's transforms cannot be applied to a table or SELECT with these columns."""
    transforms, left_out = table.transforms, {column.name for column in omitted}
    captured = {column.name: column for column in columns if column.name not in left_out}
    key = () if transforms.key is None else transforms.key.fields
    if lacking := sorted({*transforms.masked, *transforms.renamed, *transforms.cast, *key} - captured.keys()):
        raise _error(
            table, f"it has no captured column {', '.join(lacking)}", "Correct the name (case matters), or remove it"
        )
    for name, masking in transforms.masked.items():
        kind = captured[name].type_name
        if column_types.base(kind) not in CHARACTER_TYPES or captured[name].kind != "base":
            selected = table.pipeline.polled and table.poll.sql
            instead = f"cast it to text in {selected}, or leave it out there" if selected else "exclude it instead"
            advice = f"Only columns of {' and '.join(CHARACTER_TYPES)} can be masked or hashed: {instead}"
            raise _error(table, f"column {name} is of type {kind}", advice)
        if masking.algorithm is not None and not all(column.streamed for column in omitted):
            advice = (
                "An unpublished generated column prevents REPLICA IDENTITY FULL, so that updates omit large unchanged "
                "values and Debezium would hash its placeholder: mask or exclude the column instead"
            )
            raise _error(table, f"column {name} cannot be hashed", advice)
    for name, target in transforms.cast.items():
        kind, allowed = captured[name].type_name, CASTS[target][1]
        if kind not in allowed or captured[name].kind != "base":
            advice = f"Only columns of {', '.join(sorted(allowed))} can be cast to {target} without a change of values"
            raise _error(table, f"column {name} is of type {kind}", advice)
    existing = {column.name.lower() for column in columns}
    if taken := [name for name in (*transforms.renamed.values(), *transforms.inserted) if name in existing]:
        raise _error(table, f"it already has a column {taken[0]}", "Use another name for the new column")


def transformed(table: PipelineTable, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns as raw objects contain them: changed columns in place, inserted columns at the end."""
    transforms = table.transforms
    changed = []
    for column in columns:
        updates: dict[str, object] = {}
        if (masking := transforms.masked.get(column.name)) is not None:
            # `missing`, the value of older rows, is in clear text. Its hash cannot be computed here, without the salt.
            updates |= {"masked": masking, "missing": masking.constant}
        if (target := transforms.cast.get(column.name)) is not None:
            updates |= {"type": CASTS[target][0], "uncast": column.type}
        if (name := transforms.renamed.get(column.name)) is not None:
            updates |= {"name": name, "source": column.name}
        changed.append(column.model_copy(update=updates))
    inserted = (
        # A record without the field is from before the transform.
        Column(name=name, type="text", missing=value, inserted=value)
        for name, value in transforms.inserted.items()
    )
    return (*changed, *inserted)


def describe(schema: TableSchema) -> str:
    """Return a text that lists the effects of the transforms on the columns; empty without transforms."""
    phrases = []
    for column in schema.columns:
        if column.inserted is not None:
            phrases.append(f"{column.name} inserted")
        if column.source is not None:
            phrases.append(f"{column.source} renamed to {column.name}")
        if column.masked is not None:
            effect = "masked" if column.masked.algorithm is None else f"hashed ({column.masked.algorithm})"
            phrases.append(f"{column.name} {effect}")
        if column.uncast is not None:
            phrases.append(f"{column.name} cast from {column.uncast} to {column.type}")
    return ", ".join(phrases)


def _error(table: PipelineTable, cause: str, advice: str) -> ContractError:
    return ContractError(
        f"Cannot apply the transforms of {table.pipeline.name} to table {table.source_table}: {cause}. {advice}."
    )
