"""The interface that publishes a pipeline's dashboards: pages on disk (html_pages.py) or QuickSight (quicksight.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cdc_lake.dashboard import DashboardSpec, Query


@dataclass(frozen=True)
class DeclaredDashboard:
    """A dashboard of a pipeline, as its YAML declares it."""

    pipeline: str
    name: str
    spec: DashboardSpec


@dataclass(frozen=True)
class PublishedDashboard:
    """A published dashboard."""

    changes: str
    """A phrase that describes the changes; standard_metadata.UNCHANGED if nothing changed."""
    state: Mapping[str, Any]
    """State that the next `publish` receives as `previous`; can be serialized as JSON."""
    metadata: Mapping[str, Any]
    """Metadata of the materialization."""


class Dashboards(Protocol):
    """Publishes dashboards."""

    def publish(self, declared: DeclaredDashboard, query: Query, previous: Mapping[str, Any]) -> PublishedDashboard:
        """Publish the lake's current data, and change nothing if it is published already.

        `query` runs one SELECT in the pipeline's database. `previous` is the state of the last call, or empty. Reading
        the rows may be postponed: the state then contains the time of the refresh (automation/dataset_refresh.py).
        """

    def delete(self, pipeline: str, names: Sequence[str]) -> Iterator[str]:
        """Delete these dashboards of a pipeline, with everything that was created for them.

        Yields a line for each item that existed. Can be repeated after an interruption.
        """

    def address(self, pipeline: str, name: str) -> str:
        """Return the dashboard's path or URL."""
