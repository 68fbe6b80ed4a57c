"""Checks of the lake table: keys are unique, files are healthy, and its content equals the source's, row by row."""

import dataclasses

import dagster as dg

from cdc_lake.pipeline import report
from cdc_lake.pipeline.flow import TableFlow, location
from cdc_lake.pipeline.job_runs import JobRuns
from cdc_lake.pipeline.verification import Systems, verify_applied
from resources.athena import Athena
from resources.deployment import Deployment
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.postgres import Postgres
from resources.spark_jobs import SparkJobs

_SHOWN = 10
_MB = 2**20


def build(table: TableFlow) -> list[dg.AssetChecksDefinition]:
    """The checks of a lake asset."""
    asset = table.key("lake")
    catalog = table.pipeline.spec.catalog

    @dg.asset_check(asset=asset, description=f"No two rows of {catalog}.{table.name} have the same key.")
    def keys_unique(athena: Athena) -> dg.AssetCheckResult:
        key = ", ".join(f'"{name}"' for name in table.spec.key)
        sql = (
            f'SELECT {key}, count(*) FROM "{catalog}"."{table.name}" GROUP BY {key} HAVING count(*) > 1 LIMIT {_SHOWN}'  # noqa: S608 - checked identifiers
        )
        twice = athena.query(sql).rows
        return dg.AssetCheckResult(
            passed=not twice, metadata={"doubled_keys": dg.MetadataValue.json([list(map(str, row)) for row in twice])}
        )

    @dg.asset_check(
        asset=asset,
        description=(
            f"Every row of {table.source_table} at a consistent point stands in {catalog}.{table.name} with the same "
            "values, and no other row does; keys with changes that the lake has not applied yet are left out, and "
            "counted as pending. `cdc-lake verify` waits for those."
        ),
    )
    def equals_source(
        postgres: Postgres, kafka: Kafka, store: ObjectStore, spark: dg.ResourceParam[SparkJobs], deployment: Deployment
    ) -> dg.AssetCheckResult:
        jobs = JobRuns(spark)
        systems = Systems(postgres, kafka, store, jobs)
        found = verify_applied(table, systems, seconds=deployment.stream_seconds, limit=_SHOWN)
        counts = ("source_rows", "lake_rows", "compared", "pending", "missing", "extra", "different", "doubled")
        nothing = found.source_rows > 0 and not found.compared and found.clean
        return dg.AssetCheckResult(
            passed=found.clean and not nothing,
            severity=dg.AssetCheckSeverity.WARN if nothing else dg.AssetCheckSeverity.ERROR,
            description="Nothing could be compared: every row has changes that the lake lacks" if nothing else None,
            metadata={
                **report.facts({name: getattr(found, name) for name in counts}),
                **report.facts({f"seconds_{phase}": seconds for phase, seconds in found.seconds.items()}),
                **jobs.metadata(),
                "differences": dg.MetadataValue.json([dataclasses.asdict(one) for one in found.differences]),
            },
        )

    @dg.asset_check(
        asset=asset, description="The table's newest files are not many small ones: 1 MB a file, or one file."
    )
    def file_sizes_healthy(athena: Athena, store: ObjectStore) -> dg.AssetCheckResult:
        sql = f'SELECT DISTINCT "_hoodie_file_name" FROM "{catalog}"."{table.name}"'  # noqa: S608 - checked identifiers
        live = {row[0] for row in athena.query(sql).rows}
        listed = location(store).store().scan(table.lake_prefix)
        sizes = {name: item.size for item in listed if (name := item.key.rpartition("/")[2]) in live}
        total = sum(sizes.values())
        mean = total / max(1, len(sizes))
        missing = sorted(live - sizes.keys())
        return dg.AssetCheckResult(
            passed=not missing and (len(sizes) <= 1 or mean >= _MB),
            metadata={
                "live_files": len(sizes),
                "mean_bytes": mean,
                "total_bytes": total,
                "missing_files": dg.MetadataValue.json(missing[:_SHOWN]),
            },
        )

    return [keys_unique, equals_source, file_sizes_healthy]
