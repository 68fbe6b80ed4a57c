"""Find the columns that differ, with both values, for the few keys that a report lists."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.jobs.verify.changed_keys import JUDGE
from cdc_lake.jobs.verify.compared_rows import REFUSED, key_names, names, nothing_refused
from cdc_lake.jobs.verify.matching import CASE
from cdc_lake.jobs.verify.report import Difference

FAULTS = ("missing", "extra", "different", "doubled")
SOURCE_ROW, LAKE_ROW = "ours", "theirs"
_SHOWN = 80
"""The maximum length of a shown value, in characters."""


def shown(column: SparkColumn, lake_type: str) -> SparkColumn:
    """Return a value as a text of at most _SHOWN characters."""
    text = F.concat(F.lit("0x"), F.hex(column)) if lake_type == "binary" else column.cast("string")
    return F.when(F.length(text) > _SHOWN, F.concat(F.substring(text, 1, _SHOWN), F.lit("…"))).otherwise(text)


def differing(schema: TableSchema, left: str, right: str) -> SparkColumn:
    """Return an array of (name, left value, right value) of the columns that differ. The left struct has REFUSED."""

    def refused(name: str) -> SparkColumn:
        return F.col(f"{left}.{REFUSED}").getItem(name)

    pairs = [
        F.when(
            ~F.col(f"{left}.{name}").eqNullSafe(F.col(f"{right}.{name}")) | refused(name).isNotNull(),
            F.struct(
                F.lit(column.name).alias("name"),
                F.coalesce(refused(name), shown(F.col(f"{left}.{name}"), column.lake_type)).alias("left"),
                shown(F.col(f"{right}.{name}"), column.lake_type).alias("right"),
            ),
        )
        for name, column in zip(names(schema), schema.columns, strict=True)
    ]
    return F.filter(F.array(*pairs), lambda pair: pair.isNotNull())


def key_text(schema: TableSchema) -> SparkColumn:
    """Return the key as a struct of texts with the columns' original names."""
    by_name = dict(zip(names(schema), schema.columns, strict=True))
    return F.struct(*(shown(F.col(n), by_name[n].lake_type).alias(by_name[n].name) for n in key_names(schema)))


def pending_keys(cases: DataFrame, schema: TableSchema, limit: int) -> dict[str, dict[str, str | None]]:
    """Return the `limit` pending keys with the smallest digests, by digest."""
    digest = F.substring(F.sha2(F.to_json(F.struct(*key_names(schema))), 256), 1, 16)
    found = cases.where(F.col(CASE) == "pending").select(digest.alias("digest"), key_text(schema).alias("k"))
    return {row["digest"]: row["k"].asDict() for row in found.orderBy("digest").limit(limit).collect()}


def listed(cases: DataFrame, schema: TableSchema, limit: int) -> DataFrame:
    """Return the first `limit` keys with a fault, ordered by key."""
    return cases.where(F.col(CASE).isin(*FAULTS)).orderBy(*key_names(schema)).limit(limit)


def of_keys(rows: DataFrame, keys: DataFrame, schema: TableSchema, alias: str) -> DataFrame:
    """Return one row for each of these keys: the key, and a struct of all values and REFUSED."""
    key = key_names(schema)
    found = rows.join(F.broadcast(keys.select(*key)), key, "left_semi")
    if REFUSED not in rows.columns:
        found = found.withColumn(REFUSED, nothing_refused())
    return found.groupBy(*key).agg(F.first(F.struct(*names(schema), REFUSED)).alias(alias))


def differences(cases: DataFrame, schema: TableSchema) -> list[Difference]:
    """Return Differences for the cases (key, CASE, JUDGE, and a struct of all values of each side)."""
    columns = F.when(F.col(CASE) == "different", differing(schema, SOURCE_ROW, LAKE_ROW))
    found = cases.orderBy(*key_names(schema)).select(CASE, JUDGE, key_text(schema).alias("k"), columns.alias("c"))
    return [
        Difference(
            kind=row[CASE],
            key=row["k"].asDict(),
            columns={one["name"]: (one["left"], one["right"]) for one in row["c"] or ()},
            judge=row[JUDGE],
        )
        for row in found.collect()
    ]
