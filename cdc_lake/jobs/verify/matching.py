"""Matching the two sides by key, by fingerprints of their rows.

A fingerprint is two 64-bit hashes of all values, chained from different seeds, each value with whether it is NULL
(a NULL alone would leave the chain as it is, and (1, NULL) and (NULL, 1) would look the same). A key's rows are held
against each other only, so what counts is the odds that one changed row keeps both hashes: 2^-128, a row; that any
of 10^12 changed rows does: below 10^-26. (It is not the odds that some two of all rows meet, which grow with the
square of their number.) xxHash is no protection against somebody who builds collisions on purpose.
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
    """The two hashes of a row's values, as one struct."""
    values = [part for name in columns for part in (F.isnull(name), F.col(name))]
    return F.struct(*(F.xxhash64(F.lit(seed), *values).alias(f"h{n}") for n, seed in enumerate(_SEEDS)))


def source_fingerprints(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Keys and fingerprints (`print`) of the source's rows; that of a row with refused values is no lake row's."""
    # Shifted rather than hashed again: Spark writes the columns' expressions out wherever they are used.
    shift = F.when(F.col(REFUSED).isNotNull(), 1).otherwise(0)
    told = F.col("print")
    shifted = F.struct(*((told.getField(f"h{n}") + shift).alias(f"h{n}") for n in range(len(_SEEDS))))
    return rows.select(*keys, REFUSED, fingerprint(columns).alias("print")).select(*keys, shifted.alias("print"))


def lake_fingerprints(rows: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Keys, fingerprints, and what else the lake's rows tell."""
    return rows.select(*keys, fingerprint(columns).alias("print"), DELETED, SEEN)


def match_by_key(source: DataFrame, lake: DataFrame, keys: Sequence[str]) -> DataFrame:
    """One row a key of either side, with its CASE.

    A full outer join, done as a union that is grouped by key: the same answer with one shuffle and no sort, and a key
    that stands on one side twice shows.
    """
    one, none, nothing = F.lit(1), F.lit(0), F.lit(None).cast("bigint")
    ours = source.select(
        *keys, one.alias("s"), none.alias("l"), *_hash_columns("s", "print"), *_hash_columns("l", nothing)
    )
    ours = ours.withColumns({DELETED: F.lit(None).cast("boolean"), SEEN: F.lit(True)})
    theirs = lake.select(
        *keys,
        none.alias("s"),
        one.alias("l"),
        *_hash_columns("s", nothing),
        *_hash_columns("l", "print"),
        DELETED,
        SEEN,
    )
    grouped = (ours.unionByName(theirs).groupBy(*keys)).agg(
        F.sum("s").alias("s"),
        F.sum("l").alias("l"),
        # Each by itself: Spark groups numbers by hashing, and structs by sorting everything.
        *(F.max(name).alias(name) for name in ("s0", "s1", "l0", "l1")),
        F.coalesce(F.bool_and(DELETED), F.lit(True)).alias(DELETED),
        F.bool_and(SEEN).alias(SEEN),
    )
    return grouped.select(*keys, _case().alias(CASE))


def _hash_columns(side: str, of: str | SparkColumn) -> list[SparkColumn]:
    """A fingerprint's two hashes, or nothing twice."""
    return [(F.col(of).getField(f"h{n}") if isinstance(of, str) else of).alias(f"{side}{n}") for n in range(2)]


def _case() -> SparkColumn:
    """`changed`: the lake's row is newer than the point, so the source's can't judge it. `nowhere`: deleted in the
    lake, and not at the source.
    """
    at_source, in_lake = F.col("s") > 0, ~F.col(DELETED)
    return (
        F.when((F.col("s") > 1) | (F.col("l") > 1), "doubled")
        .when(~F.col(SEEN), CHANGED)
        .when(at_source & ~in_lake, "missing")
        .when(~at_source & in_lake, "extra")
        .when(~at_source, "nowhere")
        .when((F.col("s0") == F.col("l0")) & (F.col("s1") == F.col("l1")), "equal")
        .otherwise("different")
    )
