"""A pipeline with one small table, for faults that only a new snapshot repairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from psycopg2 import sql

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epoch, Epochs
from cdc_lake.demo.graph import Materialised
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.operations import resnapshot as operation
from cdc_lake.pipeline.operations import resnapshot_steps
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.profile import resolved, spark
from cdc_lake_tests.helpers.pipeline_graph import graph
from resources.connect.kafka_connect import KafkaConnect
from resources.postgres.resource import Postgres
from resources.waiting import until

YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: {name}
  source: {{ database: devdb, schema: {name}, tables: [goods], publication: {name} }}
  stream: {{ prefix: {name}, partitions: 3 }}
  tables: [{{ name: goods, key: [id] }}]
  targets:
    - name: lake
      database: {name}
  retained_wal_limit_mb: 16
"""
STAGES = ("source", "topic", "raw", "lake")
Row = tuple[int, str]


class SmallPipeline:
    """The pipeline, on the running stack in CDC_LAKE_HOME."""

    def __init__(self, name: str, folder: Path, worker: KafkaConnect | None = None) -> None:
        (folder / name).mkdir()
        (folder / name / "defs.yaml").write_text(YAML.format(name=name))
        self.loaded = load(name, folder)
        self.server: Postgres | None = None
        self.worker = worker
        late = {name: self._late(name) for name in ("postgres", "connect", "deployment")}
        self.graph = graph(self.loaded, resources=late)
        self.create_table(20, "first")

    @property
    def resources(self) -> Mapping[str, Any]:
        """Return the resources at their current addresses.

        `server` replaces the stack's PostgreSQL, and `worker`, which has no exactly-once, its Connect worker.
        """
        found = dict(resolved())
        if self.server is not None:
            found["postgres"] = self.server
        if self.worker is not None:
            found["connect"] = self.worker
            found["deployment"] = found["deployment"].model_copy(update={"exactly_once": "requested"})
        return found

    def _late(self, name: str) -> dg.ResourceDefinition:
        return dg.ResourceDefinition(lambda _: self.resources[name])

    @property
    def table(self) -> PipelineTable:
        """Return the only table."""
        return self.loaded.tables[0]

    @property
    def store(self) -> ObjectStore:
        """The bucket."""
        return location(self.resources["store"]).store()

    @property
    def epoch(self) -> Epoch:
        """Return the current epoch."""
        found = Epochs(self.store, self.loaded.name).current()
        assert found is not None
        return found

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL at the source, and return its rows."""
        with self.loaded.source_postgres(self.resources["postgres"]).connect() as db, db.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def create_table(self, rows: int, value: str) -> None:
        """Create schema and table at the source, with this number of rows."""
        name = self.loaded.name
        self.execute(
            f"create schema {name}; create table {name}.goods (id int primary key, v text not null);"
            f"insert into {name}.goods select g, %s from generate_series(1, %s) g",
            value,
            rows,
        )

    def change(self, round_: str, delete: Sequence[int] = ()) -> None:
        """Update every third row, insert one, and delete the given ones."""
        name = sql.Identifier(self.loaded.name, "goods")
        with self.loaded.source_postgres(self.resources["postgres"]).connect() as db, db.cursor() as cursor:
            cursor.execute(sql.SQL("update {} set v = %s where id %% 3 = 0").format(name), (round_,))
            cursor.execute(
                sql.SQL("insert into {} select coalesce(max(id), 0) + 1, %s from {}").format(name, name), (round_,)
            )
            cursor.execute(sql.SQL("delete from {} where id = any(%s)").format(name), (list(delete),))

    def materialise(self, *stages: str) -> Materialised:
        """Materialise the named stages, or all."""
        return self.graph.materialise(*(stages or STAGES))

    def resnapshot(self, reason: str = "requested by a test") -> list[str]:
        """Do what `cdc-lake resnapshot` does, and return its messages."""
        systems = resnapshot_steps.systems_of(self.loaded, self.resources, spark().run, 60)
        return list(operation.resnapshot(self.loaded, systems, reason))

    def barrier(self) -> None:
        """Wait until Kafka has everything that is committed by now."""
        found = self.resources
        table_progress.barrier(
            self.loaded.source_postgres(found["postgres"]), found["kafka"], found["connect"], self.loaded, 60
        )

    def at_source(self) -> list[Row]:
        """Return the source's rows."""
        return [(row[0], row[1]) for row in self.execute(f"select id, v from {self.loaded.name}.goods order by id")]

    def in_lake(self) -> list[Row]:
        """Return the rows of the lake's view."""
        found = self.resources["athena"].query(f'SELECT id, v FROM "{self.loaded.catalog}"."goods_current"')
        return sorted((row[0], row[1]) for row in found.rows)

    def land_and_compare(self) -> None:
        """Materialise topic, raw and lake, and require that the lake has the source's rows."""
        self.materialise("topic", "raw", "lake")
        assert self.in_lake() == self.at_source()

    def stop_connector(self) -> None:
        """Stop the connector, as an operator would to repair the database."""
        connect = self.resources["connect"]
        connect.ensure_stopped(self.loaded.connector, {})

    def failed(self) -> str:
        """Wait until a task of the connector has failed, and return the connector's status."""
        status = until(
            lambda: self.resources["connect"].status(self.loaded.connector),
            lambda seen: seen is not None and bool(seen.failed_tasks),
            seconds=90,
            what=f"a task of connector {self.loaded.connector} to fail",
        )
        return str(status)
