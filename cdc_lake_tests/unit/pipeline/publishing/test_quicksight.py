"""The dashboard asset with QuickSight: created objects, ingestions and metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest
import yaml
from pydantic import PrivateAttr

from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import dashboard
from cdc_lake.pipeline.assets.standard_metadata import LAKE_COMMITS, UNCHANGED
from cdc_lake.pipeline.automation import dataset_refresh
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.operations.reset import reset
from cdc_lake.pipeline.publishing.quicksight import QuickSightDashboards
from cdc_lake_tests.aws_api.quicksight.in_memory import OWNER, SESSION, Served, served
from cdc_lake_tests.aws_api.quicksight.objects import ACCOUNT
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock
from cdc_lake_tests.unit.pipeline.sales_dashboard import SALES
from infra.local.aws_api.athena.trino_engine import USER_ERROR, QueryFailed
from resources.athena import Athena, QueryResult
from resources.quicksight.ingestions import IngestionFailed
from resources.quicksight.resource import QuickSight

SELECTED = [{"Name": "name", "Type": "STRING"}, {"Name": "revenue", "Type": "INTEGER"}]
DATA_SET = {
    "Name": "{{title}}",
    "PhysicalTableMap": {
        "sql": {
            "CustomSql": {
                "DataSourceArn": "{{data_source_arn}}",
                "Name": "sql",
                "SqlQuery": "{{sql}}",
                "Columns": SELECTED,
            }
        }
    },
}
DEFINITION = {
    "DataSetIdentifierDeclarations": [{"Identifier": "rows", "DataSetArn": "{{data_set_arn}}"}],
    "Sheets": [{"SheetId": "{{sheet_id}}", "Name": "{{title}}"}],
}
ID = "cdc-lake-shop-sales"

Materialise = Callable[..., dict[str, Any]]


class CountingAthena(Athena):
    """Answers the checksum query from the rows of the fake QuickSight engine."""

    _rows: list[list[Any]] = PrivateAttr(default_factory=list)

    def reading_rows_of(self, aws: Served) -> CountingAthena:
        """Use the rows of this fake API; return self."""
        self._rows = aws.engine.rows
        return self

    def query(self, sql: str) -> QueryResult:  # type: ignore[override]  # no result is reused
        """Return row count and checksum of the rows."""
        assert "checksum" in sql
        columns = (("row_count", "bigint"), ("row_checksum", "varchar"))
        return QueryResult(columns, ((len(self._rows), f"{hash(str(self._rows)):x}"),), "query-1", 0, 0.0)


@pytest.fixture
def aws() -> Iterator[Served]:
    """A fake QuickSight API with two rows in its engine."""
    with served() as found:
        found.engine.columns = {"name": "varchar", "revenue": "integer"}
        found.engine.rows = [["Anne", 3], ["Ben", 5]]
        yield found


@pytest.fixture
def materialise(shop: Shop, aws: Served) -> Materialise:
    """Materialises the dashboard and returns its metadata."""
    (shop.pipeline.folder / "data_set.json").write_text(json.dumps(DATA_SET))
    (shop.pipeline.folder / "definition.json").write_text(json.dumps(DEFINITION))
    files = {"data_set": "data_set.json", "definition": "definition.json"}
    quicksight = {"sql": "SELECT name, revenue FROM sales", **files}
    (shop.pipeline.folder / "sales.yaml").write_text(yaml.safe_dump({**SALES, "quicksight": quicksight}))
    asset = dashboard.build(shop.pipeline, "sales.yaml")
    athena = CountingAthena().reading_rows_of(aws)

    def run_once(pause: float = 0.0, **changes: object) -> dict[str, Any]:
        quicksight_resource = QuickSight(
            endpoint_url=aws.url, account_id=ACCOUNT, principal=OWNER, attempts=1, poll_seconds=0.01
        ).model_copy(update=changes)
        quicksight_resource._session = SESSION
        dashboards = QuickSightDashboards(quicksight=quicksight_resource, refresh_pause_seconds=pause)
        with dg.DagsterInstance.ephemeral() as instance:
            resources = fake_resources(athena=athena, dashboards=dashboards, store=shop.store)
            result = dg.materialize([asset], instance=instance, resources=resources, run_config=QUIET)
            [event] = result.get_asset_materialization_events()
            return {name: value.value for name, value in event.materialization.metadata.items()}

    return run_once


def test_the_first_run_creates_all_objects_and_ingests_rows(materialise: Materialise, aws: Served) -> None:
    metadata = materialise()
    assert metadata["changes"] == (
        "data source created, data set created, analysis created, dashboard created, rows ingested"
    )
    assert (metadata["rows_ingested"], metadata["version"]) == (2, 1)
    assert metadata["dashboard"] == f"created: arn:aws:quicksight:us-east-1:{ACCOUNT}:dashboard/{ID}"
    assert metadata["dagster/uri"] == f"https://us-east-1.quicksight.aws.amazon.com/sn/dashboards/{ID}"
    assert "shop_lake.sales" in aws.engine.queries[0]


def test_a_run_without_changes_neither_updates_nor_ingests(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.changes()
    metadata = materialise()
    assert metadata["changes"] == UNCHANGED
    assert "ingestion" not in metadata
    assert aws.changes() == []
    assert len(aws.engine.queries) == 1


def test_new_rows_are_ingested_without_other_changes(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.changes()
    aws.engine.rows.append(["Carol", 8])
    metadata = materialise()
    assert (metadata["changes"], metadata["rows_ingested"]) == ("rows ingested", 3)
    assert aws.changes() == ["CreateIngestion"]


def test_new_rows_are_not_ingested_before_the_refresh_pause_ends(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.changes()
    aws.engine.rows.append(["Carol", 8])
    metadata = materialise(pause=3600)
    assert metadata["changes"] == UNCHANGED
    assert metadata["refresh"].startswith("postponed until 20")
    assert aws.changes() == []
    assert materialise()["rows_ingested"] == 3


def test_waiting_rows_launch_a_refresh_after_the_pause(
    shop: Shop, materialise: Materialise, aws: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = shop.pipeline.spec.model_copy(update={"dashboards": ["sales.yaml"], "datasets": []})
    pipeline = replace(shop.pipeline, spec=spec)
    jobs, key = Jobs(pipeline, []), pipeline.key("dashboard", "sales")
    shop.order(1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    clock = Clock()
    monkeypatch.setattr(dataset_refresh, "time", clock)
    commits = dg.MetadataValue.json(table_progress.lake_commits(shop.bucket, pipeline))

    def evaluate_refresh() -> dg.SensorResult | dg.SkipReason:
        resources = fake_resources(store=shop.store)
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=resources, sensor_name="refresh") as context,
        ):
            instance.report_runless_asset_event(dg.AssetMaterialization(key, metadata={LAKE_COMMITS: commits}))
            found = dataset_refresh.build(pipeline, jobs, [], [], 5)(context)
        assert isinstance(found, dg.SensorResult | dg.SkipReason)
        return found

    materialise()
    assert isinstance(evaluate_refresh(), dg.SkipReason)
    aws.engine.rows.append(["Carol", 8])
    materialise(pause=3600)
    assert isinstance(evaluate_refresh(), dg.SkipReason)
    clock.advance(3601)
    ready = evaluate_refresh()
    assert isinstance(ready, dg.SensorResult)
    [request] = ready.run_requests or ()
    assert request.asset_selection == (key,)
    assert materialise()["rows_ingested"] == 3


def test_a_failed_ingestion_is_retried_after_the_pause(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.engine.rows.append(["Carol", 8])
    aws.engine.failure = QueryFailed("SYNTAX_ERROR: line 1:8: no", USER_ERROR)
    with pytest.raises(IngestionFailed, match="SQL_EXCEPTION: SYNTAX_ERROR"):
        materialise()
    aws.changes()
    aws.engine.failure = None
    with pytest.raises(IngestionFailed, match="SQL_EXCEPTION"):
        materialise(pause=3600)
    assert aws.changes() == [], "a failed ingestion counts towards the daily limit, so the next one waits too"
    assert materialise()["rows_ingested"] == 3


def test_a_reset_deletes_all_objects(shop: Shop, materialise: Materialise, aws: Served) -> None:
    materialise()
    quicksight_resource = QuickSight(
        endpoint_url=aws.url, account_id=ACCOUNT, principal=OWNER, attempts=1, poll_seconds=0.01
    )
    quicksight_resource._session = SESSION
    dashboards = QuickSightDashboards(quicksight=quicksight_resource)
    pipeline = replace(shop.pipeline, spec=shop.pipeline.spec.model_copy(update={"dashboards": ["sales.yaml"]}))
    systems = (shop.source, shop.kafka, shop.connect, shop.glue, shop.bucket, shop.deployment, dashboards)
    removed = [line.partition(" arn:")[0] for line in reset(pipeline, *systems) if "quicksight" in line]
    assert removed == ["dashboard", "analysis", "data set", "data source"]
    assert list(dashboards.delete("shop", ["sales"])) == []
    assert materialise()["changes"].startswith("data source created, data set created")
