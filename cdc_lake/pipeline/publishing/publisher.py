"""What publishes a pipeline's dashboards: the interface that the page on disk and QuickSight share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from cdc_lake.dashboard import DashboardSpec, Query


@dataclass(frozen=True)
class Declared:
    """A dashboard of a pipeline, as its YAML declares it."""

    pipeline: str
    name: str
    spec: DashboardSpec


@dataclass(frozen=True)
class Published:
    """A dashboard that shows what the lake says now."""

    changes: str
    """What this took, in words; report.UNCHANGED for nothing."""
    note: Mapping[str, Any]
    """What `publish` is given the next time, as JSON."""
    metadata: Mapping[str, Any]
    """What Dagster shows of it."""


class Dashboards(Protocol):
    """Something that publishes dashboards."""

    reads_later: ClassVar[bool]
    """Whether `publish` may put reading the rows off; its note then says until when (refresh.py)."""

    def publish(self, declared: Declared, query: Query, noted: Mapping[str, Any]) -> Published:
        """Make the dashboard show what the lake says now; without a difference nothing is changed.

        `query` runs one SELECT in the pipeline's database, `noted` is the note of the last time, empty without one.
        """

    def delete(self, pipeline: str, names: Sequence[str]) -> Iterator[str]:
        """Remove a pipeline's dashboards, those of these names, with all that was made for them.

        Yields a line for each thing that was there; can be run again after it was cut off.
        """

    def address(self, pipeline: str, name: str) -> str:
        """Where people find the dashboard: a path or a URL."""
