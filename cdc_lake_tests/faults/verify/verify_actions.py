"""Actions of a writer in verification tests: verify like the asset check, and tamper with the lake.

Tampering is a direct Hudi write, without event and checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations.verification import VerifySystems, verify_applied
from cdc_lake.profile import resolved, spark
from cdc_lake_tests.faults.writers import writer_actions


def applied(seconds: float) -> Mapping[str, Any]:
    """Do what the asset check equals_source does, and return its report."""
    found = resolved()
    table = writer_actions.table()
    postgres = table.pipeline.source_postgres(found["postgres"])
    systems = VerifySystems(postgres, found["kafka"], found["connect"], found["store"], spark())
    return asdict(verify_applied(table, systems, seconds=seconds))


def tamper(key: int, column: str, value: str) -> None:
    """Change one cell of the row with this key."""
    spec = writer_actions.table().upsert_spec(location(resolved()["store"]), owner="a test")
    spark().run(_tampered, (spec, key, column, value))


def _tampered(session: SparkSession, what: tuple[UpsertSpec, int, str, str]) -> None:
    spec, key, column, value = what
    rows = session.read.format("hudi").load(spec.uri()).where(F.col(spec.key[0]) == key)
    kept = [name for name in rows.columns if not name.startswith("_hoodie_")]
    changed = rows.select(*kept).withColumn(column, F.lit(value).cast(rows.schema[column].dataType))
    changed.write.format("hudi").options(**spec.hudi_table().options()).option(
        "hoodie.datasource.write.operation", "upsert"
    ).mode("append").save()
