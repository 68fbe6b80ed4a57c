"""dashboard: one self-contained page made from the datasets, through the same Athena SQL as any reader's."""

import base64
import hashlib
from datetime import UTC, datetime
from pathlib import Path, PurePath

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.dashboard import QueryOnce, Rows, fingerprint, load_dashboard
from cdc_lake.pipeline import report
from cdc_lake.pipeline.flow import RUNS_WITHIN, Flow
from resources.athena import Athena
from resources.deployment import Deployment

_SAME = ("made_of", "sha256")
"""Where both are what they were, the page stands."""


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
    def dashboard_asset(
        context: dg.AssetExecutionContext, athena: Athena, deployment: Deployment
    ) -> dg.MaterializeResult[None]:
        query = QueryOnce(lambda sql: _rows(athena, sql))
        path = page_path(deployment, flow, name)
        made_of = fingerprint(dashboard, query)
        last = report.last(context)
        if path.exists() and [made_of, _sha256(path)] == [last[each].value for each in _SAME if each in last]:
            return dg.MaterializeResult(metadata={**last, **report.facts({"changes": report.UNCHANGED})})
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
        return dg.MaterializeResult(
            metadata={
                "dagster/uri": path.as_uri(),
                "changes": "page written",
                "page": dg.MetadataValue.path(str(path)),
                "made_of": made_of,
                "sha256": _sha256(path),
                "bytes": len(page.html.encode()),
                **{f"rows_{visual}": rows for visual, rows in page.rows.items()},
                **{
                    f"preview_{visual}": dg.MetadataValue.md(_image(visual, png))
                    for visual, png in page.previews.items()
                },
            }
        )

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


def _image(title: str, png: bytes) -> str:
    return f"![{title}](data:image/png;base64,{base64.b64encode(png).decode()})"
