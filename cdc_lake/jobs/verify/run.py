"""The verify job: read both sides once, match them by key, then examine only the keys that are not equal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.lake_state import LakeState
from cdc_lake.jobs.verify import cell_differences, changed_keys, compared_rows, matching, source_rows
from cdc_lake.jobs.verify.cell_differences import LAKE_ROW, MISMATCHES, SOURCE_ROW
from cdc_lake.jobs.verify.changed_keys import APPLIED, AT_POINT, COMPARED_WITH, UNKNOWN
from cdc_lake.jobs.verify.compared_rows import DELETED
from cdc_lake.jobs.verify.matching import CASE, CHANGED
from cdc_lake.jobs.verify.report import PENDING_SAMPLED, Difference, VerifyReport
from cdc_lake.jobs.verify.spec import VerifySpec


def run(spark: SparkSession, spec: VerifySpec) -> VerifyReport:
    """Compare one table; write nothing.

    Raises SourceUnreadableError, and ObjectDamagedError if required raw events are missing or changed.
    """
    with ExitStack() as cached, contract_errors():
        return _Run(spark, spec, cached).report()


def _mismatches(counts: Mapping[str, int]) -> int:
    return sum(counts.get(case, 0) for case in MISMATCHES)


@dataclass
class _Run:
    """One comparison. When `cached` is closed, it removes the data frames from Spark's cache."""

    spark: SparkSession
    spec: VerifySpec
    cached: ExitStack
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns = compared_rows.names(self.spec.schema)
        self.key = compared_rows.key_names(self.spec.schema)

    def report(self) -> VerifyReport:
        """Read and match both sides, resolve changed keys, and look up differences."""
        with self._timed("source"):
            source = self._cache(matching.source_fingerprints(self._source_rows(), self.key, self.columns))
            source_count = source.count()
        with self._timed("lake"):
            lake = self._cache(matching.lake_fingerprints(self._lake_rows(), self.key, self.columns))
            lake_count = lake.where(~F.col(DELETED)).count()
        with self._timed("match"):
            cases = self._cache(self._matched(source, lake))
            direct = self._counts(cases)
        with self._timed("resolve"):
            resolved = self._resolved(cases, source, lake) if direct.get(CHANGED) else None
            by_events = {} if resolved is None else self._counts(resolved)
        with self._timed("details"):
            differences = [
                *(self._plain_differences(cases) if _mismatches(direct) else []),
                *(self._resolved_differences(resolved) if resolved is not None and _mismatches(by_events) else []),
            ]
            pending = direct.get("pending", 0)
            sampled = cell_differences.pending_keys(cases, self.spec.schema, PENDING_SAMPLED) if pending else {}
        mismatches = {case: direct.get(case, 0) + by_events.get(case, 0) for case in MISMATCHES}
        return VerifyReport(
            source_rows=source_count,
            lake_rows=lake_count,
            compared=direct.get("equal", 0) + _mismatches(direct) + sum(by_events.values()),
            resolved=sum(by_events.values()),
            pending=pending,
            missing=mismatches["missing"],
            extra=mismatches["extra"],
            different=mismatches["different"],
            doubled=mismatches["doubled"],
            differences=differences[: self.spec.limit],
            seconds=self.seconds,
            pending_keys=sampled,
            omitted_columns=[column.name for column in self.spec.schema.omitted],
        )

    def _source_rows(self) -> DataFrame:
        return source_rows.source_rows(self.spark, self.spec)

    def _lake_rows(self) -> DataFrame:
        return compared_rows.lake_rows(self.spark, self.spec, self.spec.lake)

    def _matched(self, source: DataFrame, lake: DataFrame) -> DataFrame:
        cases = matching.match_by_key(source, lake, self.key)
        later = []
        if self.spec.later is not None:
            later.append(compared_rows.later_keys(self.spark, self.spec, self.spec.later))
        if self.spec.source.settled:
            later.append(source_rows.unpolled_keys(self.spark, self.spec))
            # A later poll, or a reconciliation, changed the lake's row: its state at the last poll is not known.
            cases = cases.withColumn(CASE, F.when(F.col(CASE) == CHANGED, "pending").otherwise(F.col(CASE)))
        if not later:
            return cases
        keys = reduce(DataFrame.unionByName, later).distinct().withColumn("_later", F.lit(True))
        joined = cases.join(keys, self.key, "full")
        return joined.select(*self.key, F.when(F.col("_later"), "pending").otherwise(F.col(CASE)).alias(CASE))

    def _resolved(self, cases: DataFrame, source: DataFrame, lake: DataFrame) -> DataFrame:
        keys = self._cache(cases.where(F.col(CASE) == CHANGED).select(*self.key))
        compared = self._compared_states(keys, source, lake, self.spec.base)
        unknown = self._cache(compared.where(UNKNOWN).select(*self.key))
        if self.spec.base is None or unknown.isEmpty():
            return compared
        # For these keys, the rows as of `base` do not show the state at the point: read all events.
        return compared.where(~F.col(UNKNOWN)).unionByName(self._compared_states(unknown, source, lake, None))

    def _compared_states(
        self, keys: DataFrame, source: DataFrame, lake: DataFrame, base: LakeState | None
    ) -> DataFrame:
        states = changed_keys.fold_events(self.spark, self.spec, keys, base)
        return self._cache(changed_keys.compare_states(states, source, lake, self.columns, self.key))

    def _plain_differences(self, cases: DataFrame) -> list[Difference]:
        schema = self.spec.schema
        mismatched = self._cache(
            cell_differences.first_mismatches(cases, schema, self.spec.limit).withColumn(COMPARED_WITH, F.lit("source"))
        )
        source = cell_differences.rows_of_keys(self._source_rows(), mismatched, schema, SOURCE_ROW)
        lake = cell_differences.rows_of_keys(self._lake_rows(), mismatched, schema, LAKE_ROW)
        joined = mismatched.join(source, self.key, "left").join(lake, self.key, "left")
        return cell_differences.differences(joined, schema)

    def _resolved_differences(self, resolved: DataFrame) -> list[Difference]:
        schema = self.spec.schema
        mismatched = self._cache(cell_differences.first_mismatches(resolved, schema, self.spec.limit))
        source = cell_differences.rows_of_keys(self._source_rows(), mismatched, schema, "_source")
        lake = cell_differences.rows_of_keys(self._lake_rows(), mismatched, schema, "_lake")
        joined = mismatched.join(source, self.key, "left").join(lake, self.key, "left")
        by_source = F.col(COMPARED_WITH) == "source"
        at_point, applied = (
            F.struct(*(f"{side}.{name}" for name in self.columns), compared_rows.no_rejections())
            for side in (AT_POINT, APPLIED)
        )
        return cell_differences.differences(
            joined.withColumn(SOURCE_ROW, F.when(by_source, F.col("_source")).otherwise(applied)).withColumn(
                LAKE_ROW, F.when(by_source, at_point).otherwise(F.col("_lake"))
            ),
            schema,
        )

    def _counts(self, cases: DataFrame) -> dict[str, int]:
        return {row[CASE]: row["count"] for row in cases.groupBy(CASE).count().collect()}

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[phase] = round(time.monotonic() - started, 3)

    def _cache(self, rows: DataFrame) -> DataFrame:
        """Cache rows until the run ends."""
        persisted = rows.persist(StorageLevel.MEMORY_AND_DISK)
        self.cached.callback(persisted.unpersist)
        return persisted
