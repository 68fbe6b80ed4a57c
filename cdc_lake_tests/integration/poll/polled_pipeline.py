"""A polled pipeline over PostgreSQL, Kafka, S3 and Spark: SQL at the source, polls, and the lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.store import S3Store
from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.jobs.verify import VerifyReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.operations import land_and_apply, polling, reconciliation, repolling, verification
from cdc_lake.pipeline.operations.polling import PollResult
from cdc_lake.pipeline.operations.reconciliation import ReconcileResult
from cdc_lake.pipeline.operations.resnapshot_steps import ResnapshotSystems
from cdc_lake.pipeline.pipeline import Pipeline, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source, topic_state
from cdc_lake_tests.integration.jobs.engines import Engines
from infra.local.stack.endpoints import REGION
from resources.object_store import ObjectStore
from resources.postgres.polling import MARGIN_SECONDS
from resources.postgres.resource import Postgres
from resources.waiting import until

YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: {name}
  source: {{ kind: query, database: devdb, schema: {name} }}
  stream: {{ prefix: polled }}
  tables:
{tables}
"""


@dataclass
class PolledPipeline:
    """A pipeline whose schema of the same name exists at the source.

    `run_job` runs Spark jobs; None runs them in the session of `engines`.
    """

    loaded: Pipeline
    engines: Engines
    postgres: SourcePostgres
    run_job: Callable[[Callable[[Any, Any], Any], Any], Any] | None = None

    @classmethod
    def created(
        cls, name: str, folder: Path, engines: Engines, postgres: Postgres, tables: str, files: Mapping[str, str]
    ) -> PolledPipeline:
        """Create the schema; `tables` is the YAML of the tables, `files` are the SQL files."""
        (folder / name).mkdir(parents=True)
        (folder / name / "defs.yaml").write_text(YAML.format(name=name, tables=tables))
        for file, text in files.items():
            (folder / name / file).write_text(text)
        pipeline = load(name, folder)
        made = cls(pipeline, engines, pipeline.source_postgres(postgres))
        made.execute(f"create schema {name}")
        return made

    def table(self, name: str) -> PipelineTable:
        """Return a table."""
        return next(each for each in self.loaded.tables if each.name == name)

    @property
    def store(self) -> S3Store:
        """The bucket."""
        return self.engines.location.store()

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL at the source, in the pipeline's schema, and return its rows."""
        with self.postgres.connect() as db, db.cursor() as cursor:
            cursor.execute(f"set search_path to {self.loaded.name}, public")
            named = values[0] if values and isinstance(values[0], Mapping) else None
            cursor.execute(statement, named or values or None)
            return cursor.fetchall() if cursor.description else []

    def run(self, job: Callable[[Any, Any], Any], spec: object) -> Any:  # noqa: ANN401 - the job's report
        """Run a job."""
        return job(self.engines.spark, spec) if self.run_job is None else self.run_job(job, spec)

    @property
    def systems(self) -> polling.PollSystems:
        """The systems of a poll."""
        return polling.PollSystems(self.postgres, self.engines.kafka, self.engines.location, self.run, "a test", 60)

    def poll(self, name: str) -> PollResult:
        """Poll a table, as the topic asset does."""
        return polling.poll(self.table(name), self.systems)

    def bound(self, name: str, last: Bound | None) -> Bound:
        """Return the bound of the next window."""
        return polled_source.bound(self.table(name), self.postgres, last)

    def land_and_apply(self, name: str) -> None:
        """Land a table's records, and apply them if it is a Hudi table."""
        table, where = self.table(name), self.engines.location
        land_and_apply.land(table, self.postgres, self.engines.kafka, where, self.run, "a test")
        if table.is_hudi:
            land_and_apply.apply(table, self.postgres, table.upsert_spec(where, "a test"), self.run)

    def carry(self, name: str) -> PollResult:
        """Poll, land and apply."""
        polled = self.poll(name)
        self.land_and_apply(name)
        return polled

    def reconcile(self, name: str) -> ReconcileResult:
        """Reconcile a table, and land and apply the deletes."""
        found = reconciliation.reconcile(self.table(name), self.systems)
        self.land_and_apply(name)
        return found

    def resnapshot(self) -> list[str]:
        """Do what `cdc-lake resnapshot` does, and return its messages."""
        systems = ResnapshotSystems(
            postgres=self.postgres,
            kafka=self.engines.kafka,
            connect=SimpleNamespace(),  # type: ignore[arg-type]  # it is not used
            location=self.engines.location,
            run=self.run,
            config={},
            snapshot_seconds=60,
        )
        return list(repolling.repoll(self.loaded, systems, "a test wants it"))

    def lake(self, name: str) -> DataFrame:
        """Return the lake table."""
        uri = self.table(name).upsert_spec(self.engines.location, "a test").uri()
        return self.engines.spark.read.format("hudi").load(uri)

    def rows(self, name: str) -> dict[Any, dict[str, Any]]:
        """Return the lake's undeleted rows by key."""
        [key] = self.table(name).spec.key
        return {row[key]: row.asDict() for row in self.lake(name).where("not __deleted").collect()}

    def verify(self, name: str) -> VerifyReport:
        """Compare a table, after the lake has passed the last poll."""
        at = self.engines.location
        store = ObjectStore(
            bucket=at.bucket,
            region=at.region or REGION,
            endpoint_url=at.endpoint_url,
            access_key=at.access_key,
            secret_key=at.secret_key,
        )
        spark, connect = SimpleNamespace(run=self.run), SimpleNamespace()
        systems = verification.VerifySystems(self.postgres, self.engines.kafka, connect, store, spark)  # type: ignore[arg-type]
        found = list(verification.verify_tables(self.loaded, [self.table(name)], systems, seconds=60))
        return found[0][1]

    def watermark(self, name: str) -> int | None:
        """Return the number of the last poll that the lake has applied."""
        table = self.table(name)
        found = table_progress.lake_watermark(
            self.store, table, topic_state.current(self.engines.kafka, table, self.store)
        )
        return None if found is None else found.lsn

    def reasons(self) -> list[str]:
        """Return the reasons of the dead letters."""
        return [letter.reason for letter in dead_letters.letters(self.store, self.loaded.name)]


def settled(pipeline: PolledPipeline, table: str) -> None:
    """Wait until the bound has passed everything that is committed, then poll, land and apply."""
    wait_for_bound(pipeline, table)
    pipeline.carry(table)


def wait_for_bound(pipeline: PolledPipeline, table: str) -> None:
    """Wait until the bound has passed everything that is committed."""
    [(at,)] = pipeline.execute("select clock_timestamp()")
    until(
        lambda: pipeline.bound(table, None).at,
        lambda bound: bound > at,
        seconds=10 + MARGIN_SECONDS,
        what="the bound to pass",
        hint="",
        pause_seconds=0.1,
    )
