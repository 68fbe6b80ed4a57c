"""Checks of the lake table: unique keys, file sizes, and content that equals the source row by row."""

import dataclasses

import dagster as dg

from cdc_lake.contract.table import pending_counts
from cdc_lake.contract.table.file_slices import SMALL_BYTES
from cdc_lake.jobs.verify import VerifyReport
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import parquet_lake, tiers
from cdc_lake.pipeline.operations.verification import VerifySystems, verify_applied
from cdc_lake.pipeline.pipeline import VERIFY_POOL
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns
from resources.athena import Athena
from resources.connect.connector_interface import Connectors
from resources.deployment import Deployment
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs

_MAX_SHOWN = 10


def build(table: PipelineTable) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a lake asset."""
    asset = table.key("lake")
    entry = f'"{table.database}"."{table.catalog_table}"'

    @dg.asset_check(
        asset=asset,
        description=f"No two rows of {table.database}.{table.catalog_table} have the same key.",
        metadata=tiers.SCHEDULED,
        op_tags=step_priority.LAKE,
    )
    def keys_unique(athena: Athena) -> dg.AssetCheckResult:
        key = ", ".join(f'"{name}"' for name in table.spec.key)
        sql = f"SELECT {key}, count(*) FROM {entry} GROUP BY {key} HAVING count(*) > 1 LIMIT {_MAX_SHOWN}"  # noqa: S608 - checked identifiers
        doubled = athena.query(sql).rows
        return dg.AssetCheckResult(
            passed=not doubled,
            metadata={"doubled_keys": dg.MetadataValue.json([list(map(str, row)) for row in doubled])},
        )

    @dg.asset_check(
        asset=asset,
        description=(
            f"{table.database}.{table.name if table.is_hudi else table.view} contains exactly the rows of "
            f"{table.source_table} at a consistent point, "
            "with the same values. Keys with changes that the lake has not applied yet are not compared, but counted "
            f"as pending; a key that is pending in {pending_counts.MAX_PENDING_RUNS} runs in a row fails the check. "
            "`cdc-lake verify` waits for the lake and compares all keys."
        ),
        metadata=tiers.SCHEDULED,
        op_tags=step_priority.LAKE,
        pool=VERIFY_POOL,
    )
    def equals_source(
        postgres: Postgres,
        kafka: Kafka,
        connect: dg.ResourceParam[Connectors],
        store: ObjectStore,
        spark: dg.ResourceParam[SparkJobs],
        deployment: Deployment,
    ) -> dg.AssetCheckResult:
        jobs = JobRuns(spark)
        systems = VerifySystems(table.pipeline.source_postgres(postgres), kafka, connect, store, jobs)
        found = verify_applied(table, systems, seconds=deployment.stream_seconds, limit=_MAX_SHOWN)
        counts = ("source_rows", "lake_rows", "compared", "pending", "missing", "extra", "different", "doubled")
        nothing_compared = found.source_rows > 0 and not found.compared and found.clean
        only_warn = nothing_compared and not found.never_compared
        return dg.AssetCheckResult(
            passed=found.passed and not nothing_compared,
            severity=dg.AssetCheckSeverity.WARN if only_warn else dg.AssetCheckSeverity.ERROR,
            description=_not_compared(table, found, nothing_compared),
            metadata={
                # A key that could not be compared is not known to be wrong.
                **(tiers.LATENESS if found.never_compared and found.clean else {}),
                **standard_metadata.values({name: getattr(found, name) for name in counts}),
                **standard_metadata.values({f"seconds_{phase}": seconds for phase, seconds in found.seconds.items()}),
                **jobs.metadata(),
                **standard_metadata.values(
                    {"omitted_columns": ", ".join(found.omitted_columns)} if found.omitted_columns else {}
                ),
                "differences": dg.MetadataValue.json([dataclasses.asdict(each) for each in found.differences]),
                "not_compared": dg.MetadataValue.json(
                    [dict(key) for key in list(found.pending_keys.values())[:_MAX_SHOWN]]
                ),
                "never_compared": dg.MetadataValue.json([*map(dict, found.never_compared[:_MAX_SHOWN])]),
            },
        )

    @dg.asset_check(
        asset=asset,
        description="All live files of the table exist. Warns if their mean size is below 1 MB, unless no "
        "partition has more than one; `cdc-lake cluster` merges them.",
        metadata=tiers.SCHEDULED,
        op_tags=step_priority.LAKE,
    )
    def file_sizes_healthy(athena: Athena, store: ObjectStore) -> dg.AssetCheckResult:
        sql = f'SELECT DISTINCT "_hoodie_file_name" FROM {entry}'  # noqa: S608 - checked identifiers
        live = {row[0] for row in athena.query(sql).rows}
        files = [item for item in location(store).store().scan(table.lake_prefix) if _name(item.key) in live]
        sizes = {_name(item.key): item.size for item in files}
        # Files of different partitions are never merged, so one file in each partition is the minimum.
        single = len(sizes) <= len({item.key.rpartition("/")[0] for item in files})
        total = sum(sizes.values())
        mean = total / max(1, len(sizes))
        missing = sorted(live - sizes.keys())
        return dg.AssetCheckResult(
            passed=not missing and (single or mean >= SMALL_BYTES),
            # Small files make queries slow; a missing file makes their results wrong.
            severity=dg.AssetCheckSeverity.ERROR if missing else dg.AssetCheckSeverity.WARN,
            metadata={
                "live_files": len(sizes),
                "mean_bytes": mean,
                "total_bytes": total,
                "missing_files": dg.MetadataValue.json(missing[:_MAX_SHOWN]),
            },
        )

    if not table.is_hudi:
        return [equals_source, *parquet_lake.build(table)]
    if table.is_merge_on_read:
        # No keys_unique: until a compaction, the base files contain a row twice if it moved to another partition.
        return [equals_source, file_sizes_healthy]
    return [keys_unique, equals_source, file_sizes_healthy]


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _not_compared(table: PipelineTable, found: VerifyReport, nothing_compared: bool) -> str | None:
    """Return which keys were not compared, and what to do; None if all keys were compared."""
    if found.never_compared:
        first = ", ".join(f"{name}={value}" for name, value in found.never_compared[0].items())
        keys = f"{len(found.never_compared)} key{'s' if len(found.never_compared) > 1 else ''}"
        return (
            f"Cannot compare {keys} of {table.name}, the first one {first}: in each of the last "
            f"{pending_counts.MAX_PENDING_RUNS} runs the lake had not applied the newest change. "
            f"Run `cdc-lake verify {table.pipeline.name}`, which waits for the lake and compares all keys, "
            "then this check again."
        )
    if nothing_compared:
        return "Nothing was compared: every row has changes that the lake has not applied"
    return f"Pending, not compared: {found.pending} of {found.pending + found.compared} keys" if found.pending else None
