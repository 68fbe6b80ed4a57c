"""The dashboard's stage with QuickSight: what a run makes, when rows are read anew, and what Dagster is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from pydantic import PrivateAttr

from cdc_lake.dashboard import DashboardError
from cdc_lake.pipeline import refresh
from cdc_lake.pipeline.quicksight import QuickSightDashboards
from cdc_lake.pipeline.report import UNCHANGED
from cdc_lake.pipeline.reset import reset
from cdc_lake.pipeline.stages import dashboard
from cdc_lake_tests.fakes.dagster import QUIET, bound
from cdc_lake_tests.fakes.quicksight import OWNER, SESSION, Served, served
from cdc_lake_tests.unit.pipeline.sensors.daemon import Clock
from cdc_lake_tests.unit.pipeline.test_dashboard_stage import SALES
from cdc_lake_tests.world import World
from infra.local.aws_endpoint.engine import USER_ERROR, QueryFailed
from infra.local.aws_endpoint.quicksight_state import ACCOUNT
from resources.athena import Athena, QueryResult
from resources.quicksight import QuickSight
from resources.quicksight_ingestions import IngestionFailed

THERE = {
    "sql": "SELECT name, revenue FROM sales",
    "columns": {"name": "string", "revenue": "integer"},
    "visuals": [
        {
            "visual": "bars",
            "chart": {"kind": "pie", "by": "name", "value": {"column": "revenue", "aggregate": "sum"}},
        }
    ],
}
ID = "cdc-lake-shop-sales"

Materialise = Callable[..., dict[str, Any]]


class CountingAthena(Athena):
    """Answers the question for the rows' state with the rows of the engine behind QuickSight."""

    _rows: list[list[Any]] = PrivateAttr(default_factory=list)

    def of(self, aws: Served) -> CountingAthena:
        """Itself, over those rows."""
        self._rows = aws.engine.rows
        return self

    def query(self, sql: str) -> QueryResult:
        """See Athena."""
        assert "checksum" in sql
        columns = (("row_count", "bigint"), ("row_checksum", "varchar"))
        return QueryResult(columns, ((len(self._rows), f"{hash(str(self._rows)):x}"),), "query-1", 0, 0.0)


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Served]:
    """QuickSight's API, with two rows behind it."""
    with served(tmp_path) as found:
        found.engine.columns = {"name": "varchar", "revenue": "integer"}
        found.engine.rows = [["Anne", 3], ["Ben", 5]]
        yield found


@pytest.fixture
def materialise(shop: World, aws: Served) -> Materialise:
    """Materialises the dashboard; its metadata."""
    (shop.flow.folder / "sales.yaml").write_text(yaml.safe_dump({**SALES, "quicksight": THERE}))
    asset = dashboard.build(shop.flow, "sales.yaml")
    athena = CountingAthena().of(aws)

    def once(pause: float = 0.0, **changes: object) -> dict[str, Any]:
        there = QuickSight(
            endpoint_url=aws.url, account_id=ACCOUNT, principal=OWNER, attempts=1, poll_seconds=0.01
        ).model_copy(update=changes)
        there._session = SESSION
        dashboards = QuickSightDashboards(quicksight=there, refresh_pause_seconds=pause)
        with dg.DagsterInstance.ephemeral() as instance:
            resources = bound(athena=athena, dashboards=dashboards, store=shop.store)
            result = dg.materialize([asset], instance=instance, resources=resources, run_config=QUIET)
            [event] = result.get_asset_materialization_events()
            return {name: value.value for name, value in event.materialization.metadata.items()}

    return once


def test_a_run_makes_all_and_reads_the_rows(materialise: Materialise, aws: Served) -> None:
    told = materialise()
    assert told["changes"] == ("data source created, data set created, analysis created, dashboard created, rows read")
    assert (told["rows_ingested"], told["version"]) == (2, 1)
    assert told["dashboard"] == f"created: arn:aws:quicksight:us-east-1:{ACCOUNT}:dashboard/{ID}"
    assert told["dagster/uri"] == f"https://us-east-1.quicksight.aws.amazon.com/sn/dashboards/{ID}"
    assert "shop_lake.sales" in aws.engine.asked[0]


def test_nothing_new_changes_and_reads_nothing(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.changes()
    told = materialise()
    assert told["changes"] == UNCHANGED
    assert "ingestion" not in told
    assert aws.changes() == []
    assert len(aws.engine.asked) == 1


def test_new_rows_are_read_and_nothing_else_is_changed(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.changes()
    aws.engine.rows.append(["Carol", 8])
    told = materialise()
    assert (told["changes"], told["rows_ingested"]) == ("rows read", 3)
    assert aws.changes() == ["CreateIngestion"]


def test_so_soon_after_the_last_time_new_rows_wait_for_a_later_run(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.changes()
    aws.engine.rows.append(["Carol", 8])
    told = materialise(pause=3600)
    assert told["changes"] == UNCHANGED
    assert told["refresh"].startswith("there are new rows; they are read after 20")
    assert aws.changes() == []
    assert materialise()["rows_ingested"] == 3


def test_rows_that_wait_are_read_once_their_time_has_come(
    shop: World, materialise: Materialise, aws: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = replace(shop.flow, spec=shop.flow.spec.model_copy(update={"dashboards": ["sales.yaml"]}))
    clock = Clock()
    monkeypatch.setattr(refresh, "time", clock)

    def looked() -> dg.SensorResult | dg.SkipReason:
        resources = bound(store=shop.store)
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=resources, sensor_name="refresh") as context,
        ):
            found = refresh.build(flow)(context)
        assert isinstance(found, dg.SensorResult | dg.SkipReason)
        return found

    materialise()
    waits = looked()
    assert isinstance(waits, dg.SkipReason)
    assert waits.skip_message == "no rows wait to be read"
    aws.engine.rows.append(["Carol", 8])
    materialise(pause=3600)
    waits = looked()
    assert isinstance(waits, dg.SkipReason)
    assert "the next rows are read in 3" in (waits.skip_message or "")
    clock.go(3601)
    due = looked()
    assert isinstance(due, dg.SensorResult)
    [request] = due.run_requests or ()
    assert request.asset_selection == [flow.key("dashboard", "sales")]
    assert materialise()["rows_ingested"] == 3
    waits = looked()
    assert isinstance(waits, dg.SkipReason)
    assert waits.skip_message == "no rows wait to be read"


def test_rows_that_could_not_be_read_are_tried_again(materialise: Materialise, aws: Served) -> None:
    materialise()
    aws.engine.rows.append(["Carol", 8])
    aws.engine.failure = QueryFailed("SYNTAX_ERROR: line 1:8: no", USER_ERROR)
    with pytest.raises(IngestionFailed, match=rf"data set arn:.*dataset/{ID} is FAILED: SQL_EXCEPTION: SYNTAX_ERROR"):
        materialise()
    aws.changes()
    aws.engine.failure = None
    with pytest.raises(IngestionFailed, match="SQL_EXCEPTION"):
        materialise(pause=3600)
    assert aws.changes() == [], "one that failed counts towards the day's: the next has to wait too"
    assert materialise()["rows_ingested"] == 3


def test_a_reset_leaves_nothing_of_it(shop: World, materialise: Materialise, aws: Served) -> None:
    materialise()
    there = QuickSight(endpoint_url=aws.url, account_id=ACCOUNT, principal=OWNER, attempts=1, poll_seconds=0.01)
    there._session = SESSION
    dashboards = QuickSightDashboards(quicksight=there)
    spec = shop.flow.spec.model_copy(update={"dashboards": ["sales.yaml"]})
    parts = (shop.postgres, shop.kafka, shop.connect, shop.glue, shop.bucket, shop.deployment, dashboards)
    assert list(dashboards.delete("shop", [])) == []
    said = list(reset(replace(shop.flow, spec=spec), *parts))
    removed = [line.partition(" arn:")[0] for line in said if "quicksight" in line]
    assert removed == ["dashboard", "analysis", "data set", "data source"]
    assert list(dashboards.delete("shop", ["sales"])) == []
    assert materialise()["changes"].startswith("data source created, data set created")


def test_direct_queries_need_no_reading(materialise: Materialise, aws: Served) -> None:
    assert "rows read" not in materialise(import_mode="DIRECT_QUERY")["changes"]
    aws.engine.rows.append(["Carol", 8])
    assert materialise(import_mode="DIRECT_QUERY")["changes"] == UNCHANGED
    assert aws.engine.asked == []


def test_without_a_word_to_quicksight_it_says_what_to_add(shop: World, aws: Served) -> None:
    (shop.flow.folder / "sales.yaml").write_text(yaml.safe_dump(SALES))
    asset = dashboard.build(shop.flow, "sales.yaml")
    there = QuickSight(endpoint_url=aws.url, account_id=ACCOUNT, principal=OWNER)
    dashboards = QuickSightDashboards(quicksight=there)
    resources = bound(athena=CountingAthena().of(aws), dashboards=dashboards, store=shop.store)
    with dg.DagsterInstance.ephemeral() as instance, pytest.raises(DashboardError, match="add the field quicksight"):
        dg.materialize([asset], instance=instance, resources=resources, run_config=QUIET)
    assert aws.calls == []
