"""Keys that changed after the point: their lake row can't be held against the source's row at the point.

Two things can be: what the raw events that the point has seen add up to, against the source's row at the point; and
what all applied raw events add up to, against the lake's row. Both together say of such a key what the plain
comparison says of others: that the stream carried what the source committed, and that the lake holds what the stream
carried. (One alone would not: the first never looks at the lake's row.)

The events are not read from the first manifest on. The fold of all manifests up to `base`, a commit from before the
point, is what the table held as of that commit; so its rows of these keys and the events of the manifests after it
make the same sums as the whole history, whatever order those came in. Only where that row itself has not been seen by
the point (its transaction was committed and streamed, but not visible yet) the whole history is read for its key.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.jobs.verify.compared_rows import DELETED, ORDER, SEEN, key_names, lake_rows, names, raw_rows
from cdc_lake.jobs.verify.matching import CASE, fingerprint
from cdc_lake.jobs.verify.spec import LakeState, VerifySpec

FROM_BASE = "from_base"
UNKNOWN = "unknown"
AT_POINT, APPLIED = "at_point", "applied"
JUDGE = "judge"


def manifests_after(spec: VerifySpec, base: LakeState | None) -> list[Manifest]:
    """The manifests that the judged state has applied, and `base` has not."""
    last = spec.lake.manifest if spec.lake else 0
    first = base.manifest if base else 0
    if first >= last:
        return []
    chain = Chain(spec.location.store(), spec.pipeline, spec.topic)
    found = []
    for manifest in chain.since(first):
        found.append(manifest)
        if manifest.number == last:
            break
    return found


def fold_events(spark: SparkSession, spec: VerifySpec, keys: DataFrame, base: LakeState | None) -> DataFrame:
    """The sums of each of these keys, from the rows as of `base` and the events after it: AT_POINT and APPLIED, each a
    struct of GONE and the values, NULL for no event at all; UNKNOWN where `base` does not tell the sum at the point.
    """
    manifests = manifests_after(spec, base)
    key = key_names(spec.schema)
    before = lake_rows(spark, spec, base, migrated=True).withColumn(FROM_BASE, F.lit(True))
    after = raw_rows(spark, spec, manifests, keys).withColumn(FROM_BASE, F.lit(False))
    events = before.unionByName(after).join(F.broadcast(keys.select(*key)), key, "left_semi")
    row = F.struct(DELETED, *names(spec.schema))
    sums = events.groupBy(*key).agg(
        F.max_by(row, F.when(F.col(SEEN), F.col(ORDER))).alias(AT_POINT),
        F.max_by(row, ORDER).alias(APPLIED),
        F.bool_or(F.col(FROM_BASE) & ~F.col(SEEN)).alias(UNKNOWN),
    )
    # A key without any event is one that somebody else wrote: it must not be lost here.
    known = F.coalesce(F.col(UNKNOWN), F.lit(False))
    return keys.select(*key).join(sums, key, "left").withColumn(UNKNOWN, known)


def verdicts(
    sums: DataFrame, source: DataFrame, lake: DataFrame, schema_names: Sequence[str], key: Sequence[str]
) -> DataFrame:
    """Each key of `sums` with its CASE, and whether the `source` or the `raw events` were the judge of it.

    `source` and `lake` are fingerprints. A key that neither side has, or both have alike, is `equal`.
    """
    ours = source.select(*key, F.col("print").alias("sp"))
    theirs = lake.where(~F.col(DELETED)).select(*key, F.col("print").alias("lp"))
    joined = sums.join(ours, list(key), "left").join(theirs, list(key), "left")
    point, applied = _fingerprint_of(AT_POINT, schema_names), _fingerprint_of(APPLIED, schema_names)
    at_point, in_lake = _compare(F.col("sp"), point), _compare(applied, F.col("lp"))
    judge = F.when((at_point == "equal") & (in_lake != "equal"), "raw events").otherwise("source")
    case = F.when(at_point != "equal", at_point).otherwise(in_lake)
    return joined.select(*key, case.alias(CASE), judge.alias(JUDGE), UNKNOWN, AT_POINT, APPLIED)


def _fingerprint_of(side: str, schema_names: Sequence[str]) -> SparkColumn:
    there = F.col(side).isNotNull() & ~F.col(f"{side}.{DELETED}")
    return F.when(there, fingerprint([f"{side}.{name}" for name in schema_names]))


def _compare(expected: SparkColumn, found: SparkColumn) -> SparkColumn:
    return (
        F.when(expected.eqNullSafe(found), "equal")
        .when(found.isNull(), "missing")
        .when(expected.isNull(), "extra")
        .otherwise("different")
    )
