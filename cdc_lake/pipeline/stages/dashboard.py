"""dashboard: one self-contained page made from the datasets, through the same Athena SQL as any reader's."""

import base64
from datetime import UTC, datetime
from pathlib import Path, PurePath

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.dashboard import Rows, load_dashboard, render
from cdc_lake.pipeline.flow import RUNS_WITHIN, Flow
from resources.athena import Athena
from resources.deployment import Deployment


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
    def dashboard_asset(athena: Athena, deployment: Deployment) -> dg.MaterializeResult[None]:
        page = render(
            dashboard,
            lambda sql: _rows(athena, sql),
            generated_at=datetime.now(UTC),
            source_note=f"Pipeline {flow.name}, by the same Athena SQL that any reader can run.",
        )
        path = page_path(deployment, flow, name)
        failpoints.reached("dashboard.before_page")
        write(path, page.html)
        return dg.MaterializeResult(
            metadata={
                "dagster/uri": path.as_uri(),
                "page": dg.MetadataValue.path(str(path)),
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


def _image(title: str, png: bytes) -> str:
    return f"![{title}](data:image/png;base64,{base64.b64encode(png).decode()})"
