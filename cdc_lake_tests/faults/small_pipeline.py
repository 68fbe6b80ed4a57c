"""A pipeline with one small table of its own, for faults that only a new snapshot repairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from psycopg2 import sql

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epoch, Epochs
from cdc_lake.demo.graph import Graph, Materialised
from cdc_lake.pipeline import component, table_progress
from cdc_lake.pipeline.assets.topic import connector_config
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.naming import TableFlow, location
from cdc_lake.pipeline.operations import resnapshot as steps
from cdc_lake.profile import bound, resolved, spark
from resources.connect.kafka_connect import KafkaConnect
from resources.postgres.resource import Postgres
from resources.waiting import until

YAML = """\
type: cdc_lake.CdcPipeline
attributes:
  name: {name}
  source: {{ kind: log, database: devdb, schema: {name}, tables: [goods], publication: {name} }}
  stream: {{ prefix: {name}, partitions: 3 }}
  tables: [{{ name: goods, key: [id] }}]
  catalog: {name}
  retained_wal_limit_mb: 16
"""
STAGES = ("source", "topic", "raw", "lake")
Row = tuple[int, str]


class Stall:
    """The pipeline, on a running stack that CDC_LAKE_HOME names."""

    def __init__(self, name: str, folder: Path, worker: KafkaConnect | None = None) -> None:
        (folder / name).mkdir()
        (folder / name / "defs.yaml").write_text(YAML.format(name=name))
        self.flow = load(name, folder)
        self.server: Postgres | None = None
        self.worker = worker
        self.instance = dg.DagsterInstance.ephemeral()
        built = component.build(self.flow)
        made = dg.Definitions(
            assets=built.assets,
            asset_checks=[check for check in built.asset_checks or () if _is_of(check, "topic")],
            jobs=[dg.define_asset_job(name, selection="*")],  # the pipeline's own jobs name checks that are not here
            resources={**bound(), **{name: self._late(name) for name in ("postgres", "connect", "deployment")}},
            executor=dg.in_process_executor,
        )
        self.graph = Graph(name, made, self.instance)
        self.make_table(20, "first")

    @property
    def resources(self) -> Mapping[str, Any]:
        """The resources at their present addresses; `server` takes PostgreSQL's place, and `worker`, which has no
        exactly-once, that of the stack's.
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
    def table(self) -> TableFlow:
        """The one table."""
        return self.flow.tables[0]

    @property
    def store(self) -> ObjectStore:
        """The bucket."""
        return location(self.resources["store"]).store()

    @property
    def epoch(self) -> Epoch:
        """The current epoch."""
        found = Epochs(self.store, self.flow.name).current()
        assert found is not None
        return found

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL at the source; its rows."""
        with self.flow.at_source(self.resources["postgres"]).connect() as db, db.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def make_table(self, rows: int, value: str) -> None:
        """Make schema and table at the source, with so many rows."""
        name = self.flow.name
        self.execute(
            f"create schema {name}; create table {name}.goods (id int primary key, v text not null);"
            f"insert into {name}.goods select g, %s from generate_series(1, %s) g",
            value,
            rows,
        )

    def change(self, round_: str, delete: Sequence[int] = ()) -> None:
        """Change every third row, add one, delete some."""
        name = sql.Identifier(self.flow.name, "goods")
        with self.flow.at_source(self.resources["postgres"]).connect() as db, db.cursor() as cursor:
            cursor.execute(sql.SQL("update {} set v = %s where id %% 3 = 0").format(name), (round_,))
            cursor.execute(
                sql.SQL("insert into {} select coalesce(max(id), 0) + 1, %s from {}").format(name, name), (round_,)
            )
            cursor.execute(sql.SQL("delete from {} where id = any(%s)").format(name), (list(delete),))

    def materialise(self, *stages: str) -> Materialised:
        """Materialise stages, all of them if none is named."""
        return self.graph.materialise(*(stages or STAGES))

    def resnapshot(self, reason: str = "a test asked for it") -> list[str]:
        """What the command does; what it says."""
        found = self.resources
        postgres = self.flow.at_source(found["postgres"])
        systems = steps.Systems(
            postgres=postgres,
            kafka=found["kafka"],
            connect=found["connect"],
            location=location(found["store"]),
            run=spark().run,
            config=connector_config(self.flow, postgres, found["deployment"]),
            snapshot_seconds=60,
        )
        return list(steps.resnapshot(self.flow, systems, reason))

    def barrier(self) -> None:
        """Wait until everything that was committed by now is in Kafka."""
        found = self.resources
        table_progress.barrier(self.flow.at_source(found["postgres"]), found["kafka"], found["connect"], self.flow, 60)

    def at_source(self) -> list[Row]:
        """The source's rows."""
        return [(row[0], row[1]) for row in self.execute(f"select id, v from {self.flow.name}.goods order by id")]

    def in_lake(self) -> list[Row]:
        """The rows that readers of the lake see."""
        found = self.resources["athena"].query(f'SELECT id, v FROM "{self.flow.spec.catalog}"."goods_current"')
        return sorted((row[0], row[1]) for row in found.rows)

    def carry(self) -> None:
        """Bring everything to the lake, whose rows must then be the source's."""
        self.materialise("topic", "raw", "lake")
        assert self.in_lake() == self.at_source()

    def stop_connector(self) -> None:
        """Stop the connector, as somebody who repairs the database would."""
        connect = self.resources["connect"]
        connect.halt(self.flow.connector, {})

    def failed(self) -> str:
        """Wait until a task of the connector has failed; its status."""
        status = until(
            lambda: self.resources["connect"].status(self.flow.connector),
            lambda seen: seen is not None and bool(seen.failed_tasks),
            seconds=90,
            what=f"a task of connector {self.flow.connector} to fail",
        )
        return str(status)


def _is_of(check: dg.AssetsDefinition, stage: str) -> bool:
    return all(key.asset_key.path[1] == stage for key in check.check_keys)
