"""A pipeline on a whole stack: SQL at the source, materialised assets, and the lake as Spark and Athena read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.demo.graph import Materialised
from cdc_lake.jobs.hudi.key_column import lake_columns
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.operations import polling, reconciliation, resnapshot, resnapshot_steps
from cdc_lake.pipeline.operations.verification import VerifySystems, verify_tables
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.profile import resolved, spark
from cdc_lake_tests.helpers.pipeline_graph import graph
from resources.spark.local import LocalSpark

Formats = tuple[Literal["json", "avro"], Literal["json", "avro", "parquet"]]
"""The format of the topics, and that of the raw objects."""
YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: {name}
  source: {{ database: devdb, schema: {name}, tables: [{tables}], publication: {name} }}
  stream: {{ prefix: {name}{stream} }}
  landing: {{ record_bytes: 16777216, format: {landing} }}
  dead_letter_limit: {limit}
  tables:
{declared}
  targets:
{targets}
  datasets: [{datasets}]
{more}"""
STAGES = ("source", "topic", "raw", "lake")
# Python's datetime is limited to the years 1 to 9999.
_AS_NUMBERS = {"timestamp": "unix_micros(`{}`)", "date": "datediff(`{}`, date'1970-01-01')"}


class ChainPipeline:
    """A pipeline on the running stack in CDC_LAKE_HOME; `tables` has further YAML fields by table name.

    `targets` are lines of YAML. `refined` has the SQL of refined tables that are partitioned by `kind`. `more` are
    further fields of the pipeline. `text` replaces the whole YAML; its schema must exist already. `checked` are the
    stages whose checks run.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        tables: Mapping[str, str],
        datasets: Mapping[str, str] | None = None,
        limit: int = 1000,
        targets: Sequence[str] = (),
        text: str | None = None,
        formats: Formats = ("json", "json"),
        refined: Mapping[str, str] | None = None,
        more: str = "",
        checked: Collection[str] = ("topic",),
    ) -> None:
        (folder / name).mkdir(parents=True)
        declared = "\n".join(f"    - {{ name: {table}, key: [id]{more} }}" for table, more in tables.items())
        for file, sql in {**(datasets or {}), **(refined or {})}.items():
            (folder / name / file).write_text(sql)
        yaml = text or YAML.format(
            name=name,
            tables=", ".join(tables),
            declared=declared,
            targets="\n".join(f"    - {each}" for each in targets or [f"{{ name: lake, database: {name} }}"]),
            datasets=", ".join(
                [*(datasets or {}), *(f"{{ sql: {file}, partition_by: [kind] }}" for file in refined or {})]
            ),
            limit=limit,
            stream=", format: avro, registry: apicurio" if formats[0] == "avro" else "",
            landing=formats[1],
            more=more,
        )
        (folder / name / "defs.yaml").write_text(yaml)
        self.loaded = load(name, folder)
        self.graph = graph(self.loaded, checked)
        if text is None:
            self.execute(f"create schema {name}")

    @property
    def resources(self) -> Mapping[str, Any]:
        """Return the resources at their current addresses."""
        return resolved()

    def table(self, name: str) -> PipelineTable:
        """Return a table of the pipeline."""
        return next(each for each in self.loaded.tables if each.name == name)

    @property
    def store(self) -> ObjectStore:
        """The bucket."""
        return location(self.resources["store"]).store()

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL at the source, in the pipeline's schema, with positional values or a mapping, and return its rows."""
        with self.loaded.source_postgres(self.resources["postgres"]).connect() as db, db.cursor() as cursor:
            cursor.execute(f"set search_path to {self.loaded.spec.source.schema_}, public")
            named = values[0] if values and isinstance(values[0], Mapping) else None
            cursor.execute(statement, named or values or None)
            return cursor.fetchall() if cursor.description else []

    def materialise(self, *stages: str) -> Materialised:
        """Materialise the named stages, or all up to the lake."""
        return self.graph.materialise(*(stages or STAGES))

    def await_stream(self) -> None:
        """Wait until the topic has all committed changes."""
        found = self.resources
        table_progress.barrier(
            self.loaded.source_postgres(found["postgres"]),
            found["kafka"],
            found["connect"],
            self.loaded,
            seconds=120,
        )

    def land_and_apply(self) -> Materialised:
        """Wait until the topic has all committed changes, then materialise raw and lake, as the sensors do."""
        self.await_stream()
        return self.materialise("raw", "lake")

    def reconcile(self, table: str) -> None:
        """Send deletes for the rows of a polled table that the source does not have any more."""
        found = self.resources
        postgres = self.loaded.source_postgres(found["postgres"])
        systems = polling.PollSystems(postgres, found["kafka"], self._location, spark().run, "a test")
        reconciliation.reconcile(self.table(table).hudi_targets[0], systems)

    def resnapshot(self) -> list[str]:
        """Do what `cdc-lake resnapshot` does, and return its messages."""
        systems = resnapshot_steps.systems_of(self.loaded, self.resources, spark().run, 120)
        return list(resnapshot.resnapshot(self.loaded, systems, "a test wants it"))

    def by_spark(self, table: str, target: int = 0) -> dict[int, dict[str, Any]]:
        """Return the lake's undeleted rows by id, with dates in days and timestamps in microseconds since 1970."""
        found = self.table(table).in_targets[target]
        rows = _session().read.format("hudi").load(found.upsert_spec(self._location, "test").uri())
        for name, kind in rows.dtypes:
            if kind in _AS_NUMBERS:
                rows = rows.withColumn(name, F.expr(_AS_NUMBERS[kind].format(name)))
        return {row["id"]: row.asDict() for row in rows.where("not __deleted").collect()}

    def types(self, table: str) -> list[tuple[str, str]]:
        """Return the lake table's columns and types, as in its files."""
        uri = self.table(table).upsert_spec(self._location, "test").uri()
        rows = _session().read.format("hudi").load(uri)
        return rows.select(*lake_columns(rows)).dtypes

    @property
    def _location(self) -> Any:  # noqa: ANN401 - an S3Location
        return location(self.resources["store"])

    def by_athena(self, sql: str) -> list[tuple[object, ...]]:
        """Run a query in the pipeline's own database, and return its rows."""
        athena = self.resources["athena"].model_copy(update={"database": self.loaded.catalog})
        return list(athena.query(sql).rows)

    def dead_letters(self) -> list[DeadLetter]:
        """Return the open dead letters."""
        return list(dead_letters.letters(self.store, self.loaded.name))

    def stop(self) -> None:
        """Stop the connector and drop the slot, which would retain the stack's WAL."""
        found = self.resources
        found["connect"].delete(self.loaded.connector)
        self.loaded.source_postgres(found["postgres"]).drop_slot(self.loaded.slot)


def _session() -> SparkSession:
    found = spark()
    assert isinstance(found, LocalSpark)
    return found.session()


def verified(pipeline: ChainPipeline) -> dict[str, tuple[bool, int]]:
    """Compare all lake tables with the source."""
    resources = pipeline.resources
    postgres = pipeline.loaded.source_postgres(resources["postgres"])
    systems = VerifySystems(postgres, resources["kafka"], resources["connect"], resources["store"], spark())
    found = verify_tables(pipeline.loaded, pipeline.loaded.lake_tables, systems, seconds=120, apply=True)
    reports = {table.lake_table: report for table, report in found}
    assert not [each for report in reports.values() for each in report.differences]
    return {name: (report.clean, report.lake_rows) for name, report in reports.items()}
