"""Match the rows of both sides by key, and compare them by fingerprints.

A fingerprint consists of two 64-bit hashes of all values, with different seeds. Each value is hashed together with a
flag for NULL: xxhash64 skips NULL values, so that (1, NULL) and (NULL, 1) would otherwise have the same hash. Only rows
with the same key are compared: the probability that a changed row keeps both hashes is 2^-128, and below 10^-26 for any
of 10^12 changed rows. Collisions between rows of different keys, whose probability grows with the square of the number
of rows, do not matter. xxHash is not a cryptographic hash: it does not prevent deliberate collisions.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.jobs.verify.compared_rows import DELETED, REJECTED, VISIBLE

CASE = "case"
CHANGED = "changed"
FINGERPRINT = "fingerprint"
_SEEDS = (0x9E3779B9, 0x85EBCA6B)


def fingerprint(columns: Sequence[str]) -> SparkColumn:
    """Return the two hashes of a row's values as one struct."""
    values = [part for name in columns for part in (F.isnull(name), F.col(name))]
    return F.struct(*(F.xxhash64(F.lit(seed), *values).alias(f"h{n}") for n, seed in enumerate(_SEEDS)))


def source_fingerprints(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return keys and fingerprints of the source's rows; a row with rejected values matches no lake row."""
    # Add 1 to the hashes of rows with rejected values, instead of hashing them with a flag: Spark would evaluate the
    # columns' expressions again.
    shift = F.when(F.col(REJECTED).isNotNull(), 1).otherwise(0)
    hashes = F.col(FINGERPRINT)
    shifted = F.struct(*((hashes.getField(f"h{n}") + shift).alias(f"h{n}") for n in range(len(_SEEDS))))
    return rows.select(*keys, REJECTED, fingerprint(columns).alias(FINGERPRINT)).select(
        *keys, shifted.alias(FINGERPRINT)
    )


def lake_fingerprints(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return keys, fingerprints and flags of the lake's rows."""
    return rows.select(*keys, fingerprint(columns).alias(FINGERPRINT), DELETED, VISIBLE)


def match_by_key(source: DataFrame, lake: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return one row for each key of either side, with its CASE.

    The result is that of a full outer join. A union that is grouped by key needs one shuffle and no sort, and detects a
    key that one side has twice.
    """
    one, zero, null = F.lit(1), F.lit(0), F.lit(None).cast("bigint")
    source_side = source.select(
        *keys,
        one.alias("source_rows"),
        zero.alias("lake_rows"),
        *_hash_columns("source", FINGERPRINT),
        *_hash_columns("lake", null),
    )
    source_side = source_side.withColumns({DELETED: F.lit(None).cast("boolean"), VISIBLE: F.lit(True)})
    lake_side = lake.select(
        *keys,
        zero.alias("source_rows"),
        one.alias("lake_rows"),
        *_hash_columns("source", null),
        *_hash_columns("lake", FINGERPRINT),
        DELETED,
        VISIBLE,
    )
    grouped = (source_side.unionByName(lake_side).groupBy(*keys)).agg(
        F.sum("source_rows").alias("source_rows"),
        F.sum("lake_rows").alias("lake_rows"),
        # Separate columns instead of structs: Spark aggregates numbers with a hash table, but structs with a sort.
        *(F.max(name).alias(name) for name in ("source_h0", "source_h1", "lake_h0", "lake_h1")),
        F.coalesce(F.bool_and(DELETED), F.lit(True)).alias(DELETED),
        F.bool_and(VISIBLE).alias(VISIBLE),
    )
    return grouped.select(*keys, _case().alias(CASE))


def _hash_columns(side: str, of: str | SparkColumn) -> list[SparkColumn]:
    """Return the two hash columns of a side, NULL for the other side's rows."""
    return [(F.col(of).getField(f"h{n}") if isinstance(of, str) else of).alias(f"{side}_h{n}") for n in range(2)]


def _case() -> SparkColumn:
    """Return the CASE of a key.

    `doubled`: a side has more than one row. `changed`: the lake's row is newer than the point, so that it cannot be
    compared with the source's row. `absent`: the lake's row is deleted, and the source has no row.
    """
    in_source, in_lake = F.col("source_rows") > 0, ~F.col(DELETED)
    return (
        F.when((F.col("source_rows") > 1) | (F.col("lake_rows") > 1), "doubled")
        .when(~F.col(VISIBLE), CHANGED)
        .when(in_source & ~in_lake, "missing")
        .when(~in_source & in_lake, "extra")
        .when(~in_source, "absent")
        .when((F.col("source_h0") == F.col("lake_h0")) & (F.col("source_h1") == F.col("lake_h1")), "equal")
        .otherwise("different")
    )
