"""The dashboard asset: the page is written if something has changed, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from cdc_lake.dashboard import DashboardError
from cdc_lake.pipeline.assets import dashboard
from cdc_lake.pipeline.assets.standard_metadata import UNCHANGED
from cdc_lake.pipeline.publishing.html_pages import Pages
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.athena import FakeAthena
from cdc_lake_tests.fakes.dagster import QUIET, bound
from resources.deployment import Deployment

SALES = {
    "title": "Sales",
    "subtitle": "Who buys",
    "database": "shop_lake",
    "dataset": "sales",
    "visuals": [
        {
            "name": "bars",
            "title": "Revenue",
            "message": "By customer.",
            "sql": "SELECT name, revenue FROM sales ORDER BY name",
            "columns": {
                "name": {"label": "Customer"},
                "revenue": {"format": "integer"},
            },
            "chart": {"mark": "bar", "encoding": {"x": {"field": "revenue"}, "y": {"field": "name"}}},
        }
    ],
}

Materialise = Callable[[], dict[str, Any]]


@pytest.fixture
def athena() -> FakeAthena:
    made = FakeAthena(output_location="s3://none/")
    made.sql.run("CREATE TABLE sales (name TEXT, revenue INTEGER)")
    made.sql.run("INSERT INTO sales VALUES ('Anne', 3), ('Ben', 5)")
    return made


@pytest.fixture
def materialise(shop: World, athena: FakeAthena, tmp_path: Path) -> Materialise:
    """Materialises the page and returns its metadata."""
    (shop.flow.folder / "sales.yaml").write_text(yaml.safe_dump(SALES))
    asset = dashboard.build(shop.flow, "sales.yaml")
    deployment = Deployment(profile="local", source_host="", password_reference="", pages=str(tmp_path / "pages"))

    def once() -> dict[str, Any]:
        # A new Dagster instance each time: the asset finds changes without Dagster's history.
        with dg.DagsterInstance.ephemeral() as instance:
            resources = bound(athena=athena, dashboards=Pages(deployment=deployment), store=shop.store)
            result = dg.materialize([asset], instance=instance, resources=resources, run_config=QUIET)
            [event] = result.get_asset_materialization_events()
            return {name: value.value for name, value in event.materialization.metadata.items()}

    return once


def page(metadata: dict[str, Any]) -> str:
    return Path(metadata["page"]).read_text()


def test_without_changes_the_page_is_not_written(materialise: Materialise) -> None:
    first = materialise()
    before = Path(first["page"]).stat()
    again = materialise()
    assert again["changes"] == UNCHANGED
    assert {**again, "changes": first["changes"]} == first
    assert (Path(first["page"]).stat().st_ino, Path(first["page"]).stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_its_sql_runs_in_the_pipelines_catalog(materialise: Materialise, athena: FakeAthena) -> None:
    materialise()
    assert athena.databases == {"shop_lake"}


def test_a_database_other_than_the_pipelines_catalog_is_refused(shop: World) -> None:
    file = shop.flow.folder / "sales.yaml"
    file.write_text(yaml.safe_dump({**SALES, "database": "other"}))
    with pytest.raises(DashboardError) as raised:
        dashboard.build(shop.flow, "sales.yaml")
    assert str(raised.value) == f"{file}: database: use the pipeline's catalog, shop_lake, not 'other'"


def test_new_rows_give_a_new_page(materialise: Materialise, athena: FakeAthena) -> None:
    first = materialise()
    athena.sql.run("INSERT INTO sales VALUES ('Carol', 8)")
    again = materialise()
    assert again["changes"] == first["changes"] == "page written"
    assert (first["rows_bars"], again["rows_bars"]) == (2, 3)
    assert "Carol" in page(again)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("cut off")])
def test_a_deleted_or_damaged_page_is_written_again(materialise: Materialise, damage: Callable[[Path], object]) -> None:
    first = materialise()
    damage(Path(first["page"]))
    assert materialise()["changes"] == "page written"
    assert "Anne" in page(first)
