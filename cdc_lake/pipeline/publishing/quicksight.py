"""Dashboards in QuickSight, the profile aws's: made from the same YAML, their rows read anew after the lake changed."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import dagster as dg
from pydantic import Field

from cdc_lake.dashboard import Query
from cdc_lake.dashboard.quicksight import board, state_of_rows
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation.dataset_refresh import DUE
from cdc_lake.pipeline.publishing.publisher import Declared, Published
from resources.quicksight import SPICE, Put, QuickSight
from resources.quicksight_ingestions import Ingestion

_DAILY = 32
"""How many refreshes of a dataset QuickSight's Enterprise edition takes in 24 hours (its page of CreateIngestion)."""


class QuickSightDashboards(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A data source, and a dataset, an analysis and a dashboard each (implements `publishing.Dashboards`)."""

    reads_later: ClassVar[bool] = True
    quicksight: QuickSight
    refresh_pause_seconds: float = Field(
        default=86400 / _DAILY,
        ge=0,
        description="From one ingestion that is asked for to the next: more often, and a day's quota is used up.",
    )

    def publish(self, declared: Declared, query: Query, noted: Mapping[str, Any]) -> Published:
        """See Dashboards.

        Raises DashboardError where the YAML has no `quicksight`, what QuickSight raises, and IngestionFailed: readers
        then see the rows of the ingestion before, and the next run tries again.
        """
        made = board(declared.spec, _id(declared.pipeline, declared.name))
        source = self.quicksight.data_source()
        data_set = self.quicksight.data_set(made.id, made.title, made.rows, source.arn)
        note, told = dict(noted), dict[str, Any]()
        if self.quicksight.import_mode == SPICE:
            # Asked for before the ingestion: what changes meanwhile is another state at the next run.
            rows = f"{state_of_rows(declared.spec, query)} {hashlib.sha256(repr(made.rows).encode()).hexdigest()}"
            note, told = self._refreshed(made.id, data_set, rows, noted)
        puts = {
            "data_source": source,
            "data_set": data_set,
            "analysis": self.quicksight.analysis(made, data_set.arn),
            "dashboard": self.quicksight.dashboard(made, data_set.arn),
        }
        changed = [
            f"{name.replace('_', ' ')} {put.outcome}" for name, put in puts.items() if put.outcome != "unchanged"
        ]
        changed += ["rows read"] if "ingestion" in told else []
        metadata = {
            "dagster/uri": self.address(declared.pipeline, declared.name),
            **{name: f"{put.outcome}: {put.arn}" for name, put in puts.items()},
            "version": puts["dashboard"].version,
            **told,
        }
        return Published(", ".join(changed) or standard_metadata.UNCHANGED, note, metadata)

    def delete(self, pipeline: str, names: Sequence[str]) -> Iterator[str]:
        """See Dashboards. The data source goes with the last dataset that may read from it."""
        for name in names:
            yield from self.quicksight.delete(_id(pipeline, name))
        if names:
            yield from self.quicksight.delete_data_source()

    def address(self, pipeline: str, name: str) -> str:
        """See Dashboards."""
        return self.quicksight.page(_id(pipeline, name))

    def _refreshed(
        self, board_id: str, data_set: Put, rows: str, noted: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The note and the metadata, once an ingestion that is due is through.

        One that failed counts towards the day's too: until the next is due, its failure is raised again.
        """
        now = time.time()
        if data_set.ingestion_id is None:
            if noted.get("rows") == rows:
                return {name: value for name, value in noted.items() if name != DUE}, {}
            begun = self.quicksight.last_ingestion(board_id)
            due = max(float(noted.get("refreshed", 0)), begun.at if begun else 0) + self.refresh_pause_seconds
            if now < due and begun is not None and begun.faulty:
                self.quicksight.refresh(board_id, begun.id)
            if now < due:
                said = (
                    f"there are new rows; they are read after {datetime.fromtimestamp(due, UTC):%Y-%m-%d %H:%M:%S} UTC"
                )
                return {**noted, DUE: due}, {"refresh": said}
        done = self.quicksight.refresh(board_id, data_set.ingestion_id)
        return {"rows": rows, "refreshed": now}, _told(done)


def _told(done: Ingestion) -> dict[str, Any]:
    size = {} if done.bytes is None else {"spice_bytes": done.bytes}
    return {
        "ingestion": done.arn,
        "rows_ingested": done.rows_ingested,
        "ingestion_seconds": done.seconds,
        **size,
    }


def _id(pipeline: str, name: str) -> str:
    return f"{pipeline}-{name}"
