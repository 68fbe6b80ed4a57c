"""Read lake tables with Spark, for notebooks and commands: the newest state, an earlier one, and what changed.

    >>> from cdc_lake import reading
    >>> spark, bucket = reading.session()
    >>> table = reading.table("moma_mor.artists")
    >>> reading.rows(spark, table, bucket, as_of="2026-11-25T10:00:00").where("nationality IS NULL").count()
    >>> reading.changes(spark, table, bucket, since="2026-11-25T09:00:00").show()

Both table types are read in the same way: Hudi merges the log files of a merge-on-read table. docs/notebooks has an
example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake import profile
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import history
from cdc_lake.jobs.hudi.key_column import lake_columns
from cdc_lake.pipeline import loading
from cdc_lake.pipeline.bucket_location import location
from resources.spark.local import LocalSpark

if TYPE_CHECKING:
    from cdc_lake.pipeline.pipeline_table import PipelineTable

COMMIT_TIME = "_hoodie_commit_time"
"""The column with the instant of the commit that wrote a row's newest change."""
FILE_NAME = "_hoodie_file_name"
"""The column with the file that a row was read from: a base file, which ends with `.parquet`, or the id of the file
group whose log file has the row's newest change."""


def session() -> tuple[SparkSession, S3Location]:
    """Return this process's Spark session and the bucket of the configured profile.

    Raises ContractError if Spark runs elsewhere.
    """
    engine = profile.spark()
    if not isinstance(engine, LocalSpark):
        raise ContractError(
            "Cannot start Spark in this process: the aws profile runs Spark on EMR. Run your code on EMR, and pass its "
            "session and bucket to the functions of cdc_lake.reading."
        )
    return engine.session(), location(profile.resolved()["store"])


def table(name: str) -> PipelineTable:
    """Return a Hudi table of any pipeline by its name in the catalog: `database.table`, or `table` if that is unique.

    The name may end with `_ro`, `_rt` or `_current`; case does not matter, as in Athena. Raises ContractError if no
    table, or more than one, has the name.
    """
    tables = [each for pipeline in loading.names() for each in loading.load(pipeline).hudi_tables]
    found = [each for each in tables if name.lower() in _names(each)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(sorted(f"{each.database}.{each.name}" for each in found or tables))
    advice = f"Name one of {known}." if known else "No pipeline has a target with format: hudi."
    problem = f"{len(found)} tables have this name" if found else "no pipeline has a Hudi table of this name"
    raise ContractError(f"Cannot read lake table {name!r}: {problem}. {advice}")


def _names(each: PipelineTable) -> set[str]:
    plain = {each.name, each.catalog_table, *each.catalog_entries}
    return {name.lower() for name in plain | {f"{each.database}.{name}" for name in plain}}


def rows(spark: SparkSession, table: PipelineTable, bucket: S3Location, as_of: str | None = None) -> DataFrame:
    """Return the table's rows, deleted ones included: the lake's columns, then COMMIT_TIME and FILE_NAME.

    `as_of` is an instant or a time (contract/table/history.py), `bucket` the lake's bucket. Raises what
    history.resolve() raises, and ContractError for a table without a commit.
    """
    reader, store = spark.read.format("hudi"), bucket.store()
    if as_of is not None:
        reader = reader.option("as.of.instant", history.resolve(store, table.lake_prefix, as_of))
    elif not history.commits(store, table.lake_prefix):
        raise history.no_commit(table.lake_prefix)
    read = reader.load(table.upsert_spec(bucket, owner="reading").uri())
    return read.select(*lake_columns(read), COMMIT_TIME, FILE_NAME)


def changes(
    spark: SparkSession, table: PipelineTable, bucket: S3Location, since: str, until: str | None = None
) -> DataFrame:
    """Return the newest state of each key that a commit after `since` wrote, up to `until`; deleted rows included.

    The result lacks keys whose tombstones were purged. A commit that rewrites all rows (for a column's new type) counts
    as a change of all keys. `since` may be older than the oldest state that is kept. Raises what history.resolve()
    raises for `until`.
    """
    return rows(spark, table, bucket, until).where(F.col(COMMIT_TIME) > history.instant(since)).drop(FILE_NAME)
