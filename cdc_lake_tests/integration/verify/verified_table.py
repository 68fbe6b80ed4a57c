"""A source table and its lake table, and their verification."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.value_rules import STRICT, ValueRules
from cdc_lake.contract.source.visibility import Point
from cdc_lake.contract.table import timeline
from cdc_lake.jobs import verify
from cdc_lake.jobs.verify import LakeState, SourceAccess, VerifyReport, VerifySpec
from cdc_lake.jobs.verify import SourceTable as SourceAtPoint
from cdc_lake.jobs.verify.spec import KafkaRange
from cdc_lake_tests.integration.jobs.engines import Engines
from cdc_lake_tests.integration.jobs.hudi_table import SOURCE, TOPIC, LakeTable
from cdc_lake_tests.integration.verify.source_table import COLUMNS, KEY, SourceTable, Transaction
from resources.postgres.exported_snapshot import ConsistentPoint, consistent_point
from resources.postgres.resource import Postgres


@dataclass
class VerifiedTable:
    """A table at the source and in the lake; `undelivered` are committed changes that are not landed yet."""

    source: SourceTable
    lake: LakeTable
    undelivered: list[dict[str, object]] = field(default_factory=list)

    @classmethod
    def created(cls, engines: Engines, postgres: Postgres, name: str) -> VerifiedTable:
        """Create a table without rows on both sides."""
        source = SourceTable(postgres, name)
        source.create()
        return cls(source, LakeTable(engines, name, COLUMNS, KEY))

    @contextmanager
    def change(self) -> Iterator[Transaction]:
        """Open a transaction; after its commit, its events are undelivered."""
        with self.source.transaction() as transaction:
            yield transaction
        self.undelivered += transaction.events

    def land_and_apply(self) -> LakeState:
        """Land and apply the undelivered events, and return the lake's state."""
        if self.undelivered:
            self.lake.deliver(self.undelivered)
            self.undelivered.clear()
        self.lake.upsert()
        return self.state()

    def state(self) -> LakeState:
        """Return the newest commit of the lake table, and the newest manifest that is applied."""
        commit = timeline.last_commit(self.lake.store, self.lake.spec.prefix)
        assert commit is not None
        assert commit.checkpoint is not None
        names = [item.key for item in self.lake.store.scan(f"{self.lake.spec.prefix}.hoodie/", recursive=False)]
        newest = max(name.rpartition("/")[2].partition(".")[0] for name in names if name.endswith(".commit"))
        return LakeState(newest, commit.checkpoint.manifest)

    @contextmanager
    def point(self) -> Iterator[ConsistentPoint]:
        """Hold a consistent point for the time of the block."""
        with consistent_point(self.source.postgres, "no_slot") as found:
            yield found

    def verify(
        self,
        point: ConsistentPoint,
        base: LakeState | None = None,
        limit: int = 20,
        rules: ValueRules = STRICT,
        later: KafkaRange | None = None,
    ) -> VerifyReport:
        """Run the verification."""
        spec = replace(self.spec(point, base, limit), values=rules, later=later)
        return verify.run(self.lake.engines.spark, spec)

    def spec(self, point: ConsistentPoint, base: LakeState | None = None, limit: int = 20) -> VerifySpec:
        """Return the job's specification."""
        server = self.source.postgres
        access = SourceAccess(server.host, server.port, server.database, server.user, server.password)
        pages = point.files("public", self.source.name).pages
        return VerifySpec(
            location=self.lake.engines.location,
            pipeline=self.lake.name,
            topic=TOPIC,
            uri=self.lake.spec.uri(),
            versions=captured_schema.require_versions(self.lake.store, self.lake.name, SOURCE),
            source=SourceAtPoint(access, point.snapshot_id, "public", self.source.name, pages),
            point=Point(0, point.lsn, point.horizon, point.snapshot.xmax, point.snapshot.in_progress),
            lake=self.state(),
            base=base,
            limit=limit,
        )

    def tamper(self, where: str, **values: object) -> None:
        """Change rows of the lake by a direct Hudi write, without an event and without a checkpoint."""
        rows = self._rows().where(where)
        for name, value in values.items():
            rows = rows.withColumn(name, F.lit(value).cast(rows.schema[name].dataType))
        self._write(rows, "upsert")

    def double(self, where: str) -> None:
        """Write rows of the lake a second time."""
        self._write(self._rows().where(where), "bulk_insert")

    def remove(self, where: str) -> None:
        """Remove rows from the lake, without tombstones."""
        self._write(self._rows().where(where), "delete")

    def _rows(self) -> DataFrame:
        rows = self.lake.engines.spark.read.format("hudi").load(self.lake.spec.uri())
        kept = [name for name in rows.columns if not name.startswith("_hoodie_")]
        return self.lake.engines.spark.createDataFrame(rows.select(*kept).collect(), rows.select(*kept).schema)

    def _write(self, rows: DataFrame, operation: str) -> None:
        options = {**self.lake.spec.hudi_table().options(), "hoodie.datasource.write.operation": operation}
        rows.write.format("hudi").options(**options).mode("append").save()
