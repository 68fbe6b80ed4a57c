"""The source's side that verify compares: the rows at the exported snapshot, with the columns of compared_rows.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.jobs.verify import source_values
from cdc_lake.jobs.verify.compared_rows import REJECTED, names, no_rejections
from cdc_lake.jobs.verify.postgres_copy import CopyReader, Range
from cdc_lake.jobs.verify.spec import VerifySpec

_RANGE_PAGES = 2048
"""The pages of 8 kB in a range: 16 MB, so that a failed task is cheap to repeat.

A table with more than _RANGES ranges of this size gets larger ranges instead.
"""
_RANGES = 512


def page_ranges(pages: int | None) -> list[Range]:
    """Split a table into at most 512 ranges of at least 16 MB; the last range has no end.

    Returns an empty list if `pages` is None: the table is then read by one statement.
    """
    if pages is None:
        return []
    size = max(_RANGE_PAGES, -(-pages // _RANGES))
    starts = list(range(0, max(pages, 1), size))
    return [*pairwise(starts), (starts[-1], None)]


def source_rows(spark: SparkSession, spec: VerifySpec) -> DataFrame:
    """Return the source's rows at the exported snapshot, with their values and REJECTED.

    For a polled table, returns only the rows that did not change after the last poll. Spark reads the
    rows later, and raises SourceUnreadableError if that fails.
    """
    named = dict(zip(names(spec.schema), spec.schema.columns, strict=True))
    text = _rows_as_text(spark, spec, named, spec.source.settled)
    return text.select(*_typed(spec, named), _rejected_values(spec).alias(REJECTED))


def unpolled_keys(spark: SparkSession, spec: VerifySpec) -> DataFrame:
    """Return the keys of a polled table's rows that changed after the last poll.

    Spark raises SourceUnreadableError if it cannot read them.
    """
    pairs = zip(names(spec.schema), spec.schema.columns, strict=True)
    named = {name: column for name, column in pairs if column.name in spec.schema.key}
    text = _rows_as_text(spark, spec, named, f"not ({spec.source.settled})")
    return text.select(*_typed(spec, named)).distinct()


def _rows_as_text(spark: SparkSession, spec: VerifySpec, named: Mapping[str, Column], condition: str) -> DataFrame:
    parts = page_ranges(spec.source.pages)
    selected = [source_values.selected_column(name, column) for name, column in named.items()]
    count = max(1, len(parts))
    reader = CopyReader(spec.source, selected, parts, condition)
    return spark.range(0, count, 1, count).mapInArrow(reader, ", ".join(f"{name} string" for name in named))


def _typed(spec: VerifySpec, named: Mapping[str, Column]) -> Iterator[SparkColumn]:
    for name, column in named.items():
        typed = source_values.to_lake_type(column, F.col(name), spec.values)
        yield source_values.normalized(column, typed).alias(name)


def _rejected_values(spec: VerifySpec) -> SparkColumn:
    pairs = zip(names(spec.schema), spec.schema.columns, strict=True)
    conditions = {name: source_values.is_rejected(column, F.col(name), spec.values) for name, column in pairs}
    found = [
        F.when(rejected, F.struct(F.lit(name).alias("name"), F.col(name).alias("text")))
        for name, rejected in conditions.items()
        if rejected is not None
    ]
    if not found:
        return no_rejections()
    entries = F.array_compact(F.array(*found))
    return F.when(F.coalesce(*found).isNotNull(), F.map_from_entries(entries))
