"""Dashboards in QuickSight, in the aws profile: published from templates, refreshed after the lake changed."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from pydantic import Field

from cdc_lake.dashboard import DashboardError, Query
from cdc_lake.dashboard.quicksight import row_checksum, templates
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation.dataset_refresh import INGESTION_ALLOWED_AT
from cdc_lake.pipeline.publishing.publisher import DeclaredDashboard, PublishedDashboard
from resources.quicksight.ingestions import Ingestion
from resources.quicksight.resource import SPICE, Put, QuickSight

_REFRESHES_PER_DAY = 32
"""The limit for a data set in QuickSight's Enterprise edition, from the documentation of CreateIngestion."""


class QuickSightDashboards(dg.ConfigurableResource):  # type: ignore[type-arg]
    """One data source, and a data set, an analysis and a dashboard for each dashboard (implements `Dashboards`).

    quicksight = QuickSight(region="eu-central-1", account_id="123456789012", principal="arn:aws:quicksight:…")
    resources = {"dashboards": QuickSightDashboards(quicksight=quicksight)}
    """

    quicksight: QuickSight
    refresh_pause_seconds: float = Field(
        default=86400 / _REFRESHES_PER_DAY,
        ge=0,
        description="Seconds between two ingestions of a data set; a shorter time can use up the daily quota.",
    )

    def publish(self, declared: DeclaredDashboard, query: Query, previous: Mapping[str, Any]) -> PublishedDashboard:
        """See Dashboards.

        Raises DashboardError if the YAML has no `quicksight` or a template is not valid, what QuickSight raises, and
        IngestionFailed: readers then see the rows of the previous ingestion, and the next run tries again.
        """
        desired = templates(declared.spec, _id(declared.pipeline, declared.name))
        try:
            self.quicksight.check(desired)
        except ValueError as error:
            raise DashboardError(f"Cannot publish the dashboard {declared.name} in QuickSight: {error}") from error
        source = self.quicksight.data_source()
        data_set = self.quicksight.data_set(desired, source.arn)
        state, metadata = dict(previous), dict[str, Any]()
        if self.quicksight.import_mode == SPICE:
            # Computed before the ingestion: if rows change during it, the next run computes another checksum.
            definition = hashlib.sha256(repr((desired.sql, desired.data_set)).encode()).hexdigest()
            rows = f"{row_checksum(declared.spec, query)} {definition}"
            state, metadata = self._refresh_if_allowed(desired.id, data_set, rows, previous)
        puts = {
            "data_source": source,
            "data_set": data_set,
            "analysis": self.quicksight.analysis(desired, data_set.arn),
            "dashboard": self.quicksight.dashboard(desired, data_set.arn),
        }
        changes = [
            f"{name.replace('_', ' ')} {put.outcome}" for name, put in puts.items() if put.outcome != "unchanged"
        ]
        changes += ["rows ingested"] if "ingestion" in metadata else []
        return PublishedDashboard(
            standard_metadata.changes(changes),
            state,
            {
                "dagster/uri": self.address(declared.pipeline, declared.name),
                **{name: f"{put.outcome}: {put.arn}" for name, put in puts.items()},
                "version": puts["dashboard"].version,
                **metadata,
            },
        )

    def delete(self, pipeline: str, names: Sequence[str]) -> Iterator[str]:
        """See Dashboards. The data source is deleted with the last data set that may read from it."""
        for name in names:
            yield from self.quicksight.delete(_id(pipeline, name))
        if names:
            yield from self.quicksight.delete_data_source()

    def address(self, pipeline: str, name: str) -> str:
        """See Dashboards."""
        return self.quicksight.page(_id(pipeline, name))

    def _refresh_if_allowed(
        self, dashboard_id: str, data_set: Put, rows: str, previous: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run the ingestion if one is needed and allowed now; return the state and the metadata.

        A failed ingestion uses up quota too: until the next one is allowed, its failure is raised again.
        """
        now = time.time()
        if data_set.ingestion_id is None:
            if previous.get("rows") == rows:
                return {name: value for name, value in previous.items() if name != INGESTION_ALLOWED_AT}, {}
            last = self.quicksight.last_ingestion(dashboard_id)
            last_at = max(float(previous.get("refreshed", 0)), last.created_at if last else 0)
            allowed_at = last_at + self.refresh_pause_seconds
            if now < allowed_at and last is not None and last.faulty:
                self.quicksight.refresh(dashboard_id, last.id)
            if now < allowed_at:
                time_ = f"{datetime.fromtimestamp(allowed_at, UTC):%Y-%m-%d %H:%M:%S} UTC"
                return {**previous, INGESTION_ALLOWED_AT: allowed_at}, {
                    "refresh": f"postponed until {time_}: QuickSight allows {_REFRESHES_PER_DAY} ingestions a day"
                }
        ingestion = self.quicksight.refresh(dashboard_id, data_set.ingestion_id)
        return {"rows": rows, "refreshed": now}, _metadata(ingestion)


def _metadata(ingestion: Ingestion) -> dict[str, Any]:
    size = {} if ingestion.bytes is None else {"spice_bytes": ingestion.bytes}
    return {
        "ingestion": ingestion.arn,
        "rows_ingested": ingestion.rows_ingested,
        "ingestion_seconds": ingestion.seconds,
        **size,
    }


def _id(pipeline: str, name: str) -> str:
    return f"{pipeline}-{name}"
