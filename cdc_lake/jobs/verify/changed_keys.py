"""Compare keys that changed after the point: their lake row cannot be compared with the source's row at the point.

Two other comparisons are made instead. The fold of the raw events that are visible at the point must equal the source's
row at the point: the stream then contains what the source committed. The fold of all applied raw events must equal the
lake's row: the lake then contains what was streamed.

The events are not read from the first manifest on. `base` is a commit from before the point, whose table is the fold of
all manifests up to it. The rows of these keys in `base`, folded with the events of later manifests in any order, have
the same result as the whole history. The whole history is read only for a key whose row in `base` is not visible at the
point (its transaction was committed and streamed, but not yet visible).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.jobs.lake_state import LakeState, manifests_up_to
from cdc_lake.jobs.verify.compared_rows import (
    DELETED,
    ORDER,
    VISIBLE,
    key_names,
    lake_rows,
    names,
    raw_rows,
)
from cdc_lake.jobs.verify.matching import CASE, FINGERPRINT, fingerprint
from cdc_lake.jobs.verify.spec import VerifySpec

FROM_BASE = "from_base"
UNKNOWN = "unknown"
AT_POINT, APPLIED = "at_point", "applied"
COMPARED_WITH = "compared_with"


def manifests_after(spec: VerifySpec, base: LakeState | None) -> list[Manifest]:
    """Return the manifests that the compared state has applied, and `base` has not."""
    return [] if spec.lake is None else manifests_up_to(spec, spec.lake, base.manifest if base else 0)


def fold_events(spark: SparkSession, spec: VerifySpec, keys: DataFrame, base: LakeState | None) -> DataFrame:
    """Fold the rows as of `base` and the events after it, for each of these keys.

    Returns AT_POINT and APPLIED, each a struct of DELETED and the values, or NULL if there is no event. UNKNOWN is true
    if the state at the point cannot be computed from `base`.
    """
    manifests = manifests_after(spec, base)
    key = key_names(spec.schema)
    before = lake_rows(spark, spec, base, migrated=True).withColumn(FROM_BASE, F.lit(True))
    after = raw_rows(spark, spec, manifests, keys, base).withColumn(FROM_BASE, F.lit(False))
    events = before.unionByName(after).join(F.broadcast(keys.select(*key)), key, "left_semi")
    row = F.struct(DELETED, *names(spec.schema))
    states = events.groupBy(*key).agg(
        F.max_by(row, F.when(F.col(VISIBLE), F.col(ORDER))).alias(AT_POINT),
        F.max_by(row, ORDER).alias(APPLIED),
        F.bool_or(F.col(FROM_BASE) & ~F.col(VISIBLE)).alias(UNKNOWN),
    )
    # A key without any event was written by another program: it must stay in the result.
    known = F.coalesce(F.col(UNKNOWN), F.lit(False))
    return keys.select(*key).join(states, key, "left").withColumn(UNKNOWN, known)


def compare_states(
    states: DataFrame, source: DataFrame, lake: DataFrame, schema_names: Sequence[str], key: Sequence[str]
) -> DataFrame:
    """Return each key of `states` with its CASE, and COMPARED_WITH, which is `source` or `raw events`.

    `source` and `lake` are fingerprints. A key that neither side has, or that both have with equal values, is `equal`.
    """
    source_fingerprints = source.select(*key, F.col(FINGERPRINT).alias("source_fingerprint"))
    lake_fingerprints = lake.where(~F.col(DELETED)).select(*key, F.col(FINGERPRINT).alias("lake_fingerprint"))
    joined = states.join(source_fingerprints, list(key), "left").join(lake_fingerprints, list(key), "left")
    point, applied = _fingerprint_of(AT_POINT, schema_names), _fingerprint_of(APPLIED, schema_names)
    at_point, in_lake = _compare(F.col("source_fingerprint"), point), _compare(applied, F.col("lake_fingerprint"))
    compared_with = F.when((at_point == "equal") & (in_lake != "equal"), "raw events").otherwise("source")
    case = F.when(at_point != "equal", at_point).otherwise(in_lake)
    return joined.select(*key, case.alias(CASE), compared_with.alias(COMPARED_WITH), UNKNOWN, AT_POINT, APPLIED)


def _fingerprint_of(side: str, schema_names: Sequence[str]) -> SparkColumn:
    exists = F.col(side).isNotNull() & ~F.col(f"{side}.{DELETED}")
    return F.when(exists, fingerprint([f"{side}.{name}" for name in schema_names]))


def _compare(expected: SparkColumn, found: SparkColumn) -> SparkColumn:
    return (
        F.when(expected.eqNullSafe(found), "equal")
        .when(found.isNull(), "missing")
        .when(expected.isNull(), "extra")
        .otherwise("different")
    )
