"""The column of a table's key, Hudi's record key, and the columns that are not Hudi's."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

KEY_COLUMN = "__key"
"""The key's values as one text, Hudi's record key. Hudi's own text for several columns is the same for
('1,b:2', '3') and ('1', '2,b:3'), and Hudi rejects an empty value."""


def with_key_column(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Add KEY_COLUMN to the rows: a JSON array of the key's values, distinct for distinct keys.

    The values are ordered by column name, so that the order of `key` does not matter. Writing a row with NULL in a key
    column fails.
    """
    kinds = dict(rows.dtypes)
    values = [F.coalesce(_key_text(name, kinds[name]), _null_key_error(name)) for name in sorted(key)]
    return rows.withColumn(KEY_COLUMN, F.to_json(F.array(*values)))


def _key_text(name: str, kind: str) -> SparkColumn:
    if kind == "binary":
        return F.hex(name)
    if kind in {"float", "double"}:
        return (F.col(name) + F.lit(0.0)).cast("string")  # PostgreSQL treats -0.0 and 0.0 as the same key
    return F.col(name).cast("string")


def _null_key_error(name: str) -> SparkColumn:
    message = f"Cannot write a row: its key column {name} is NULL. Nothing was written."
    return F.raise_error(F.lit(message)).cast("string")


def lake_columns(rows: DataFrame) -> list[str]:
    """Return the lake's columns of a stored table in order, without those of Hudi and of the writer."""
    return [name for name in rows.columns if name != KEY_COLUMN and not name.startswith("_hoodie_")]
