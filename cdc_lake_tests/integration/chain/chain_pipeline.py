"""A pipeline on a whole stack, from a table made by SQL to the rows that Spark and Athena read: the real chain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.demo.graph import Graph, Materialised
from cdc_lake.jobs.hudi.writer import lake_columns
from cdc_lake.pipeline import component, table_progress
from cdc_lake.pipeline.assets.topic import connector_config
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.naming import TableFlow, location
from cdc_lake.pipeline.operations import resnapshot
from cdc_lake.profile import bound, resolved, spark

YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: {name}
  source: {{ kind: log, database: devdb, schema: {name}, tables: [{tables}], publication: {name} }}
  stream: {{ prefix: {name} }}
  landing: {{ record_bytes: 16777216 }}
  dead_letter_limit: {limit}
  tables:
{declared}
  catalog: {name}
  datasets: [{datasets}]
"""
STAGES = ("source", "topic", "raw", "lake")
# Python's own moments end in the year 9999, and know no year before 1.
_AS_NUMBERS = {"timestamp": "unix_micros(`{}`)", "date": "datediff(`{}`, date'1970-01-01')"}


class Line:
    """The pipeline, on a running stack that CDC_LAKE_HOME names; `tables` gives the YAML's further fields by name.

    With `text`, that is the YAML, and its schema is there already.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        tables: Mapping[str, str],
        datasets: Mapping[str, str] | None = None,
        limit: int = 1000,
        text: str | None = None,
    ) -> None:
        (folder / name).mkdir(parents=True)
        declared = "\n".join(f"    - {{ name: {table}, key: [id]{more} }}" for table, more in tables.items())
        for file, sql in (datasets or {}).items():
            (folder / name / file).write_text(sql)
        yaml = text or YAML.format(
            name=name, tables=", ".join(tables), declared=declared, datasets=", ".join(datasets or {}), limit=limit
        )
        (folder / name / "defs.yaml").write_text(yaml)
        self.flow = load(name, folder)
        built = component.build(self.flow)
        made = dg.Definitions(
            assets=built.assets,
            asset_checks=[check for check in built.asset_checks or () if _is_of_topic(check)],
            jobs=[dg.define_asset_job(name, selection="*")],  # the pipeline's own jobs name checks that are not here
            resources=bound(),
            executor=dg.in_process_executor,
        )
        self.graph = Graph(name, made, dg.DagsterInstance.ephemeral())
        if text is None:
            self.execute(f"create schema {name}")

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources at their present addresses."""
        return resolved()

    def table(self, name: str) -> TableFlow:
        """One table."""
        return next(each for each in self.flow.tables if each.name == name)

    @property
    def store(self) -> ObjectStore:
        """The bucket."""
        return location(self.resources["store"]).store()

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL at the source, in the pipeline's schema, with values in order or a mapping of them; its rows."""
        with self.flow.at_source(self.resources["postgres"]).connect() as db, db.cursor() as cursor:
            cursor.execute(f"set search_path to {self.flow.spec.source.schema_}, public")
            named = values[0] if values and isinstance(values[0], Mapping) else None
            cursor.execute(statement, named or values or None)
            return cursor.fetchall() if cursor.description else []

    def materialise(self, *stages: str) -> Materialised:
        """Materialise stages, those up to the lake if none is named."""
        return self.graph.materialise(*(stages or STAGES))

    def carry(self) -> Materialised:
        """Bring everything that is committed by now to the lake, as the sensors do: the source is not looked at."""
        found = self.resources
        table_progress.barrier(
            self.flow.at_source(found["postgres"]), found["kafka"], found["connect"], self.flow, seconds=120
        )
        return self.materialise("raw", "lake")

    def resnapshot(self) -> list[str]:
        """What `cdc-lake resnapshot` does."""
        found = self.resources
        postgres = self.flow.at_source(found["postgres"])
        systems = resnapshot.Systems(
            postgres=postgres,
            kafka=found["kafka"],
            connect=found["connect"],
            location=self._location,
            run=spark().run,
            config=connector_config(self.flow, postgres, found["deployment"]),
            snapshot_seconds=120,
        )
        return list(resnapshot.resnapshot(self.flow, systems, "a test wants it"))

    def by_spark(self, table: str) -> dict[int, dict[str, Any]]:
        """The lake's rows that are not deleted, by id; days and microseconds since 1970 as numbers."""
        rows = spark().session().read.format("hudi").load(self.table(table).upsert_spec(self._location, "test").uri())
        for name, kind in rows.dtypes:
            if kind in _AS_NUMBERS:
                rows = rows.withColumn(name, F.expr(_AS_NUMBERS[kind].format(name)))
        return {row["id"]: row.asDict() for row in rows.where("not __deleted").collect()}

    def types(self, table: str) -> list[tuple[str, str]]:
        """The lake table's columns and types, as its files have them."""
        uri = self.table(table).upsert_spec(self._location, "test").uri()
        rows = spark().session().read.format("hudi").load(uri)
        return rows.select(*lake_columns(rows)).dtypes

    @property
    def _location(self) -> Any:  # noqa: ANN401 - an S3Location
        return location(self.resources["store"])

    def by_athena(self, sql: str) -> list[tuple[object, ...]]:
        """A query in the pipeline's own database."""
        athena = self.resources["athena"].model_copy(update={"database": self.flow.spec.catalog})
        return list(athena.query(sql).rows)

    def dead_letters(self) -> list[DeadLetter]:
        """The open dead letters."""
        return list(dead_letters.letters(self.store, self.flow.name))

    def end(self) -> None:
        """Stop the connector and drop the slot: a line that is done must not hold the stack's WAL."""
        found = self.resources
        found["connect"].delete(self.flow.connector)
        self.flow.at_source(found["postgres"]).drop_slot(self.flow.slot)


def _is_of_topic(check: dg.AssetsDefinition) -> bool:
    return all(key.asset_key.path[1] == "topic" for key in check.check_keys)
