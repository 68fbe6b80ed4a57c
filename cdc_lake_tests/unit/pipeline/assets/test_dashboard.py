"""The dashboard asset writes its page only when something has changed."""

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
from cdc_lake_tests.fakes.aws.athena import FakeAthena
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.sales_dashboard import SALES
from resources.deployment import Deployment

Materialise = Callable[[], dict[str, Any]]


@pytest.fixture
def athena() -> FakeAthena:
    athena = FakeAthena(output_location="s3://none/")
    athena.sql.run("CREATE TABLE sales (name TEXT, revenue INTEGER)")
    athena.sql.run("INSERT INTO sales VALUES ('Anne', 3), ('Ben', 5)")
    return athena


@pytest.fixture
def materialise(shop: Shop, athena: FakeAthena, tmp_path: Path) -> Materialise:
    """Materialises the page and returns its metadata."""
    (shop.pipeline.folder / "sales.yaml").write_text(yaml.safe_dump(SALES))
    asset = dashboard.build(shop.pipeline, "sales.yaml")
    deployment = Deployment(profile="local", source_host="", password_reference="", pages=str(tmp_path / "pages"))

    def run_once() -> dict[str, Any]:
        # A new Dagster instance each time: the asset finds changes without Dagster's history.
        with dg.DagsterInstance.ephemeral() as instance:
            resources = fake_resources(athena=athena, dashboards=Pages(deployment=deployment), store=shop.store)
            result = dg.materialize([asset], instance=instance, resources=resources, run_config=QUIET)
            [event] = result.get_asset_materialization_events()
            return {name: value.value for name, value in event.materialization.metadata.items()}

    return run_once


def page(metadata: dict[str, Any]) -> str:
    return Path(metadata["page"]).read_text()


def test_an_unchanged_page_is_not_rewritten(materialise: Materialise) -> None:
    first = materialise()
    before = Path(first["page"]).stat()
    second = materialise()
    assert second["changes"] == UNCHANGED
    assert {**second, "changes": first["changes"]} == first
    assert (Path(first["page"]).stat().st_ino, Path(first["page"]).stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_dashboard_sql_runs_in_the_pipelines_catalog(materialise: Materialise, athena: FakeAthena) -> None:
    materialise()
    assert athena.databases == {"shop_lake"}


def test_a_database_other_than_the_pipelines_catalog_is_rejected(shop: Shop) -> None:
    file = shop.pipeline.folder / "sales.yaml"
    file.write_text(yaml.safe_dump({**SALES, "database": "other"}))
    with pytest.raises(DashboardError) as raised:
        dashboard.build(shop.pipeline, "sales.yaml")
    assert str(raised.value) == f"{file}: database: use the pipeline's catalog, shop_lake, not 'other'"


def test_new_rows_rewrite_the_page(materialise: Materialise, athena: FakeAthena) -> None:
    first = materialise()
    athena.sql.run("INSERT INTO sales VALUES ('Carol', 8)")
    second = materialise()
    assert second["changes"] == first["changes"] == "page written"
    assert (first["rows_bars"], second["rows_bars"]) == (2, 3)
    assert "Carol" in page(second)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("cut off")])
def test_a_deleted_or_damaged_page_is_rewritten(materialise: Materialise, damage: Callable[[Path], object]) -> None:
    first = materialise()
    damage(Path(first["page"]))
    assert materialise()["changes"] == "page written"
    assert "Anne" in page(first)
