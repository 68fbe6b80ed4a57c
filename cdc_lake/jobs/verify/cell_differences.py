"""Find the columns that differ, with both values, for the few keys that a report lists."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.jobs.verify.changed_keys import COMPARED_WITH
from cdc_lake.jobs.verify.compared_rows import REJECTED, key_names, names, no_rejections
from cdc_lake.jobs.verify.matching import CASE
from cdc_lake.jobs.verify.report import Difference

MISMATCHES = ("missing", "extra", "different", "doubled")
SOURCE_ROW, LAKE_ROW = "source_row", "lake_row"
_SHOWN_CHARACTERS = 80
"""The number of characters after which a shown value is cut off and "…" is added."""


def shortened(column: SparkColumn, lake_type: str) -> SparkColumn:
    """Return a value as a text, cut off after _SHOWN_CHARACTERS characters with "…" at the end."""
    text = F.concat(F.lit("0x"), F.hex(column)) if lake_type == "binary" else column.cast("string")
    start = F.concat(F.substring(text, 1, _SHOWN_CHARACTERS), F.lit("…"))
    return F.when(F.length(text) > _SHOWN_CHARACTERS, start).otherwise(text)


def differing(schema: TableSchema, left: str, right: str) -> SparkColumn:
    """Return an array of (name, left value, right value) of the columns that differ. The left struct has REJECTED."""

    def rejected(name: str) -> SparkColumn:
        return F.col(f"{left}.{REJECTED}").getItem(name)

    pairs = [
        F.when(
            ~F.col(f"{left}.{name}").eqNullSafe(F.col(f"{right}.{name}")) | rejected(name).isNotNull(),
            F.struct(
                F.lit(column.name).alias("name"),
                F.coalesce(rejected(name), shortened(F.col(f"{left}.{name}"), column.lake_type)).alias("left"),
                shortened(F.col(f"{right}.{name}"), column.lake_type).alias("right"),
            ),
        )
        for name, column in zip(names(schema), schema.columns, strict=True)
    ]
    return F.filter(F.array(*pairs), lambda pair: pair.isNotNull())


def key_text(schema: TableSchema) -> SparkColumn:
    """Return the key as a struct of texts with the columns' original names."""
    by_name = dict(zip(names(schema), schema.columns, strict=True))
    return F.struct(*(shortened(F.col(n), by_name[n].lake_type).alias(by_name[n].name) for n in key_names(schema)))


def pending_keys(cases: DataFrame, schema: TableSchema, limit: int) -> dict[str, dict[str, str | None]]:
    """Return the `limit` pending keys with the smallest digests, by digest."""
    digest = F.substring(F.sha2(F.to_json(F.struct(*key_names(schema))), 256), 1, 16)
    found = cases.where(F.col(CASE) == "pending").select(digest.alias("digest"), key_text(schema).alias("k"))
    return {row["digest"]: row["k"].asDict() for row in found.orderBy("digest").limit(limit).collect()}


def first_mismatches(cases: DataFrame, schema: TableSchema, limit: int) -> DataFrame:
    """Return the first `limit` mismatches, ordered by key."""
    return cases.where(F.col(CASE).isin(*MISMATCHES)).orderBy(*key_names(schema)).limit(limit)


def rows_of_keys(rows: DataFrame, keys: DataFrame, schema: TableSchema, alias: str) -> DataFrame:
    """Return one row for each of these keys that `rows` has: the key, and a struct of all values and REJECTED."""
    key = key_names(schema)
    found = rows.join(F.broadcast(keys.select(*key)), key, "left_semi")
    if REJECTED not in rows.columns:
        found = found.withColumn(REJECTED, no_rejections())
    return found.groupBy(*key).agg(F.first(F.struct(*names(schema), REJECTED)).alias(alias))


def differences(cases: DataFrame, schema: TableSchema) -> list[Difference]:
    """Return Differences for the cases (key, CASE, COMPARED_WITH, and a struct of all values of each side)."""
    columns = F.when(F.col(CASE) == "different", differing(schema, SOURCE_ROW, LAKE_ROW))
    found = cases.orderBy(*key_names(schema)).select(
        CASE, COMPARED_WITH, key_text(schema).alias("k"), columns.alias("c")
    )
    return [
        Difference(
            kind=row[CASE],
            key=row["k"].asDict(),
            columns={one["name"]: (one["left"], one["right"]) for one in row["c"] or ()},
            compared_with=row[COMPARED_WITH],
        )
        for row in found.collect()
    ]
