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

from cdc_lake.jobs.verify.compared_rows import DELETED, REFUSED, SEEN

CASE = "case"
CHANGED = "changed"
_SEEDS = (0x9E3779B9, 0x85EBCA6B)


def fingerprint(columns: Sequence[str]) -> SparkColumn:
    """Return the two hashes of a row's values as one struct."""
    values = [part for name in columns for part in (F.isnull(name), F.col(name))]
    return F.struct(*(F.xxhash64(F.lit(seed), *values).alias(f"h{n}") for n, seed in enumerate(_SEEDS)))


def source_fingerprints(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return keys and fingerprints (`print`) of the source's rows; a row with refused values matches no lake row."""
    # Add 1 to the hashes of rows with refused values, instead of hashing them with a flag: Spark would evaluate the
    # columns' expressions again.
    shift = F.when(F.col(REFUSED).isNotNull(), 1).otherwise(0)
    hashes = F.col("print")
    shifted = F.struct(*((hashes.getField(f"h{n}") + shift).alias(f"h{n}") for n in range(len(_SEEDS))))
    return rows.select(*keys, REFUSED, fingerprint(columns).alias("print")).select(*keys, shifted.alias("print"))


def lake_fingerprints(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return keys, fingerprints and flags of the lake's rows."""
    return rows.select(*keys, fingerprint(columns).alias("print"), DELETED, SEEN)


def match_by_key(source: DataFrame, lake: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return one row for each key of either side, with its CASE.

    The result is that of a full outer join. A union that is grouped by key needs one shuffle and no sort, and detects a
    key that one side has twice.
    """
    one, zero, null = F.lit(1), F.lit(0), F.lit(None).cast("bigint")
    source_side = source.select(
        *keys, one.alias("s"), zero.alias("l"), *_hash_columns("s", "print"), *_hash_columns("l", null)
    )
    source_side = source_side.withColumns({DELETED: F.lit(None).cast("boolean"), SEEN: F.lit(True)})
    lake_side = lake.select(
        *keys,
        zero.alias("s"),
        one.alias("l"),
        *_hash_columns("s", null),
        *_hash_columns("l", "print"),
        DELETED,
        SEEN,
    )
    grouped = (source_side.unionByName(lake_side).groupBy(*keys)).agg(
        F.sum("s").alias("s"),
        F.sum("l").alias("l"),
        # Separate columns instead of structs: Spark aggregates numbers with a hash table, but structs with a sort.
        *(F.max(name).alias(name) for name in ("s0", "s1", "l0", "l1")),
        F.coalesce(F.bool_and(DELETED), F.lit(True)).alias(DELETED),
        F.bool_and(SEEN).alias(SEEN),
    )
    return grouped.select(*keys, _case().alias(CASE))


def _hash_columns(side: str, of: str | SparkColumn) -> list[SparkColumn]:
    """Return the two hash columns of a side, NULL for the other side's rows."""
    return [(F.col(of).getField(f"h{n}") if isinstance(of, str) else of).alias(f"{side}{n}") for n in range(2)]


def _case() -> SparkColumn:
    """Return the CASE of a key.

    `doubled`: a side has more than one row. `changed`: the lake's row is newer than the point, so that it cannot be
    compared with the source's row. `nowhere`: the lake's row is deleted, and the source has no row.
    """
    in_source, in_lake = F.col("s") > 0, ~F.col(DELETED)
    return (
        F.when((F.col("s") > 1) | (F.col("l") > 1), "doubled")
        .when(~F.col(SEEN), CHANGED)
        .when(in_source & ~in_lake, "missing")
        .when(~in_source & in_lake, "extra")
        .when(~in_source, "nowhere")
        .when((F.col("s0") == F.col("l0")) & (F.col("s1") == F.col("l1")), "equal")
        .otherwise("different")
    )
