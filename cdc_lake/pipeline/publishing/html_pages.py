"""Dashboards as self-contained HTML pages on disk, in the local profile.

Every command of the local profile imports this module. Modules of dashboards are imported when a page is published,
because they take a fifth of a second.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from cdc_lake.contract import failpoints
from infra.files import write_atomic
from resources.deployment import Deployment

if TYPE_CHECKING:
    from cdc_lake.dashboard import Query
    from cdc_lake.pipeline.publishing.publisher import DeclaredDashboard, PublishedDashboard


class Pages(dg.ConfigurableResource):  # type: ignore[type-arg]
    """One HTML file for each dashboard, in the deployment's folder for pages (implements `Dashboards`)."""

    deployment: Deployment

    def publish(self, declared: DeclaredDashboard, query: Query, previous: Mapping[str, Any]) -> PublishedDashboard:
        """See Dashboards. Raises DashboardError if a query result does not match the YAML."""
        from cdc_lake.dashboard import fingerprint  # noqa: PLC0415 - see the module's docstring
        from cdc_lake.pipeline.assets import standard_metadata  # noqa: PLC0415

        path = self.path(declared.pipeline, declared.name)
        current = fingerprint(declared.spec, query)
        if path.exists() and (previous.get("fingerprint"), previous.get("sha256")) == (current, _sha256(path)):
            return _published(path, previous, standard_metadata.UNCHANGED)
        from cdc_lake.dashboard.render import render  # noqa: PLC0415 - not needed if the page is unchanged

        page = render(
            declared.spec,
            query,
            rendered_at=datetime.now(UTC),
            source_note=f"Pipeline {declared.pipeline}. Anyone can run the SQL below each chart in Athena.",
        )
        failpoints.reached("dashboard.before_page")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, page.html)
        state = {
            "fingerprint": current,
            "sha256": _sha256(path),
            "rows": page.rows,
            "previews": {visual: base64.b64encode(png).decode() for visual, png in page.previews.items()},
        }
        return _published(path, state, "page written")

    def delete(self, pipeline: str, names: Sequence[str]) -> Iterator[str]:  # noqa: ARG002 - deletes the whole folder
        """See Dashboards."""
        folder = self.folder(pipeline)
        if folder.is_dir():
            shutil.rmtree(folder)
            yield f"pages in {folder.name}/"

    def address(self, pipeline: str, name: str) -> str:
        """See Dashboards."""
        return str(self.path(pipeline, name))

    def path(self, pipeline: str, name: str) -> Path:
        """Return the file of a dashboard."""
        return self.folder(pipeline) / f"{name}.html"

    def folder(self, pipeline: str) -> Path:
        """Return the folder of a pipeline's dashboards."""
        return Path(self.deployment.pages).absolute() / pipeline


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _published(path: Path, state: Mapping[str, Any], changes: str) -> PublishedDashboard:
    from cdc_lake.pipeline.publishing.publisher import PublishedDashboard  # noqa: PLC0415

    metadata = {
        "dagster/uri": path.as_uri(),
        "page": dg.MetadataValue.path(str(path)),
        "bytes": path.stat().st_size,
        "sha256": state["sha256"],
        **{f"rows_{visual}": rows for visual, rows in state["rows"].items()},
        **{
            f"preview_{visual}": dg.MetadataValue.md(f"![{visual}](data:image/png;base64,{png})")
            for visual, png in state["previews"].items()
        },
    }
    return PublishedDashboard(changes, state, metadata)
