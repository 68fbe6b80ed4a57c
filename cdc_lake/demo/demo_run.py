"""The tools of example changes: observers of each table, and runs of stages, compaction, reconciliation and verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cdc_lake import profile, reading
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import timeline
from cdc_lake.demo import verification
from cdc_lake.demo.observe import Observer
from cdc_lake.jobs.verify import VerifyReport
from cdc_lake.pipeline.assets.table_services import COMPACTION, RECONCILIATION
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations.polling import PollSystems
from cdc_lake.pipeline.pipeline import STAGES, Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable

AFTER_SOURCE = STAGES[1:]

Observed = dict[str, Any]
"""The values that an example change has seen: first the changed row's id, last `ok`: whether all are as expected."""


class RunStages(Protocol):
    """Materialises stages, of all tables or of one, with all their checks or with the light ones only."""

    def __call__(self, *stages: str, table: str | None = None, light: bool = False) -> None:
        """Materialise the stages."""


class DemoRun:
    """One pipeline during its demo."""

    def __init__(self, pipeline: Pipeline, resources: Mapping[str, Any], store: ObjectStore) -> None:
        self.pipeline = pipeline
        self.resources = resources
        self.store = store
        self.observers = {table.name: Observer(table, resources, store) for table in pipeline.tables}

    @property
    def observer(self) -> Observer:
        """The observer of the first table."""
        return self.observers[self.pipeline.tables[0].name]

    def lake_table(self, name: str, target: str) -> PipelineTable:
        """Return a table in a target."""
        [found] = [each for each in self.pipeline.lake_tables if (each.name, each.target.name) == (name, target)]
        return found

    def instant(self, table: PipelineTable) -> str:
        """Return the instant of a lake table's newest commit, which must exist."""
        commit = timeline.last_commit(self.store, table.lake_prefix)
        if commit is None:
            raise AssertionError(f"{table.lake_table} has no commit")
        return commit.instant

    def row(self, table: PipelineTable, row_id: int, as_of: str | None = None) -> dict[str, Any] | None:
        """Return the newest state of a lake table's row, or its state as of an instant; None if it does not exist."""
        session = self._spark().session()
        [key] = table.spec.key
        found = reading.rows(session, table, location(self.resources["store"]), as_of).where(f"`{key}` = {row_id}")
        rows = [row.asDict() for row in found.collect()]
        if len(rows) > 1:
            raise AssertionError(f"{table.lake_table} has {len(rows)} rows with {key} {row_id}")
        return rows[0] if rows else None

    def compact(self, table: PipelineTable) -> None:
        """Merge a table's log files into base files, as the hourly job does."""
        COMPACTION.run(table, self._systems())

    def reconcile(self, table: PipelineTable) -> None:
        """Send deletes for the rows that a polled table's source lacks, as the daily job does."""
        RECONCILIATION.run(table, self._systems())

    def verify(self, table: PipelineTable) -> VerifyReport:
        """Land and apply everything, then compare a lake table with the source."""
        [(_, report)] = verification.verify(self.pipeline, [table], self.resources, self._spark())
        return report

    def _systems(self) -> PollSystems:
        found = self.resources
        source, where = self.pipeline.source_postgres(found["postgres"]), location(found["store"])
        return PollSystems(source, found["kafka"], where, self._spark().run, f"demo of {self.pipeline.name}")

    @staticmethod
    def _spark() -> Any:  # noqa: ANN401 - LocalSpark, whose module only the local profile imports
        return profile.spark()


ExampleChange = Callable[[DemoRun, RunStages], Observed]
"""Changes the source, runs stages, and returns the observed values. It is called again if interrupted."""
