"""dashboard: one self-contained page made from the datasets, through the same Athena SQL as any reader's."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import dagster as dg

from cdc_lake.contract import failpoints, names, notes
from cdc_lake.dashboard import QueryOnce, Rows, fingerprint, load_dashboard
from cdc_lake.pipeline import report
from cdc_lake.pipeline.flow import RUNS_WITHIN, Flow, location
from resources.athena import Athena
from resources.deployment import Deployment
from resources.object_store import ObjectStore


def build(flow: Flow, file: str) -> dg.AssetsDefinition:
    """The dashboard asset of one YAML file."""
    name = PurePath(file).stem
    dashboard = load_dashboard(flow.beside(file, "dashboards"))

    @dg.asset(
        key=flow.key("dashboard", name),
        deps=[flow.key("dataset", PurePath(dataset).stem) for dataset in flow.spec.datasets],
        description=f"{dashboard.title}: one HTML page, by {file}.",
        kinds={"dashboard"},
        group_name=flow.name,
        owners=flow.spec.owners,
        freshness_policy=dg.FreshnessPolicy.time_window(RUNS_WITHIN),
    )
    def dashboard_asset(athena: Athena, deployment: Deployment, store: ObjectStore) -> dg.MaterializeResult[None]:
        query = QueryOnce(lambda sql: _rows(athena, sql))
        path = page_path(deployment, flow, name)
        made_of = fingerprint(dashboard, query)
        bucket, key = location(store).store(), names.note_key(flow.name, "dashboard", name)
        noted = notes.read(bucket, key)
        if path.exists() and (noted.get("made_of"), noted.get("sha256")) == (made_of, _sha256(path)):
            return _result(path, noted, report.UNCHANGED)
        # The charts' library takes half a second to import, and whoever loads the definitions would wait for it.
        from cdc_lake.dashboard.render import render  # noqa: PLC0415 - as said

        page = render(
            dashboard,
            query,
            generated_at=datetime.now(UTC),
            source_note=f"Pipeline {flow.name}, by the same Athena SQL that any reader can run.",
        )
        failpoints.reached("dashboard.before_page")
        write(path, page.html)
        note = {
            "made_of": made_of,
            "sha256": _sha256(path),
            "rows": page.rows,
            "previews": {visual: base64.b64encode(png).decode() for visual, png in page.previews.items()},
        }
        notes.write(bucket, key, note)
        return _result(path, note, "page written")

    return dashboard_asset


def page_path(deployment: Deployment, flow: Flow, name: str) -> Path:
    """Where a dashboard's page is written to."""
    return Path(deployment.pages).absolute() / flow.name / f"{name}.html"


def write(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _rows(athena: Athena, sql: str) -> Rows:
    found = athena.query(sql)
    return Rows(tuple(name for name, _ in found.columns), found.rows)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _result(path: Path, note: Mapping[str, Any], changes: str) -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(
        metadata={
            "dagster/uri": path.as_uri(),
            "changes": changes,
            "page": dg.MetadataValue.path(str(path)),
            "bytes": path.stat().st_size,
            "sha256": note["sha256"],
            **{f"rows_{visual}": rows for visual, rows in note["rows"].items()},
            **{
                f"preview_{visual}": dg.MetadataValue.md(f"![{visual}](data:image/png;base64,{png})")
                for visual, png in note["previews"].items()
            },
        }
    )
