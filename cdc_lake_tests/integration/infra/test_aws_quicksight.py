"""QuickSight's local API with Trino behind it: an ingestion reads what Athena's SQL gives, and says why it can't."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import cdc_lake
from cdc_lake.dashboard import DashboardSpec, Rows, load_dashboard
from cdc_lake.dashboard.quicksight import board, state_of_rows
from cdc_lake_tests.fakes.boards import BOARD, ROWS
from cdc_lake_tests.fakes.quicksight import OWNER
from cdc_lake_tests.integration.conftest import QueryStack
from infra.local.aws_endpoint.quicksight_state import ACCOUNT
from resources.athena import Athena
from resources.errors import Unreachable
from resources.quicksight import QuickSight
from resources.quicksight_ingestions import IngestionFailed

LINES = """
CREATE OR REPLACE VIEW datalake.order_items AS
SELECT * FROM (VALUES
    ('ALFKI', 1, 2, DECIMAL '3.50', DECIMAL '0.00', DECIMAL '7.0000'),
    ('ALFKI', 1, 4, DECIMAL '1.00', DECIMAL '0.25', DECIMAL '3.0000'),
    ('BERGS', 2, 1, {price}, NULL, DECIMAL '9.9900')
) AS lines (customer_id, order_id, quantity, unit_price, discount, revenue)
"""
PRICE = "DECIMAL '9.99'"


@pytest.fixture(scope="module")
def northwind() -> DashboardSpec:
    """Northwind's dashboard."""
    return load_dashboard(Path(cdc_lake.__file__).parent / "defs" / "northwind" / "customers.yaml")


@pytest.fixture(scope="module")
def athena(query_stack: QueryStack) -> Athena:
    return query_stack.athena("datalake")


@pytest.fixture(autouse=True)
def _order_lines(athena: Athena) -> Iterator[None]:
    """The view that Northwind's dashboard reads."""
    athena.execute(LINES.format(price=PRICE))
    yield
    athena.execute("DROP VIEW IF EXISTS datalake.order_items")


@pytest.fixture(scope="module")
def quicksight(query_stack: QueryStack) -> QuickSight:
    at = query_stack.at
    return QuickSight(
        endpoint_url=at.aws_endpoint,
        access_key=at.s3_access_key,
        secret_key=at.s3_secret_key.get_secret_value(),
        account_id=ACCOUNT,
        principal=OWNER,
        poll_seconds=0.05,
        ingestion_seconds=60,
        attempts=2,
        hint="Run `cdc-lake up`.",
    )


def test_rows_are_read_and_counted(quicksight: QuickSight) -> None:
    source = quicksight.data_source()
    data_set = quicksight.data_set(BOARD.id, BOARD.title, ROWS, source.arn)
    assert quicksight.refresh(BOARD.id, data_set.ingestion_id).rows_ingested == 3
    assert quicksight.analysis(BOARD, data_set.arn).outcome in ("created", "unchanged")
    assert quicksight.dashboard(BOARD, data_set.arn).outcome in ("created", "unchanged")
    assert quicksight.dashboard(BOARD, data_set.arn).outcome == "unchanged"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT customer_id FROM datalake.nowhere", "SQL_EXCEPTION: TABLE_NOT_FOUND"),
        ("SELECT nothing FROM datalake.order_items", "SQL_EXCEPTION: COLUMN_NOT_FOUND"),
        ("SELECT customer_id FROM order_items", "SQL_EXCEPTION: MISSING_SCHEMA_NAME"),
        ("SELECT customer_id FROM datalake.order_items", "SQL_SCHEMA_MISMATCH_ERROR: The SQL does not give"),
        (ROWS.sql.replace("quantity,", "CAST(quantity AS varchar) AS quantity,"), "quantity is declared as INTEGER"),
        ("DROP VIEW datalake.order_items", "SQL_EXCEPTION: SYNTAX_ERROR"),
    ],
)
def test_sql_that_is_broken_fails_the_ingestion(quicksight: QuickSight, athena: Athena, sql: str, said: str) -> None:
    broken = quicksight.data_set("broken", "Broken", replace(ROWS, sql=sql), quicksight.data_source().arn)
    with pytest.raises(IngestionFailed) as caught:
        quicksight.refresh("broken", broken.ingestion_id)
    assert said in str(caught.value)
    assert broken.arn in str(caught.value)
    assert athena.query("SELECT count(*) FROM order_items").rows == ((3,),)


def test_northwind_s_declaration_is_read(quicksight: QuickSight, northwind: DashboardSpec) -> None:
    made = board(northwind, "northwind-customers")
    data_set = quicksight.data_set(made.id, made.title, made.rows, quicksight.data_source().arn)
    assert quicksight.refresh(made.id, data_set.ingestion_id).rows_ingested == 3
    assert quicksight.dashboard(made, data_set.arn).outcome in ("created", "unchanged")


def test_the_state_of_the_rows_is_another_with_another_value(athena: Athena, northwind: DashboardSpec) -> None:
    def query(sql: str) -> Rows:
        found = athena.query(sql)
        return Rows(tuple(name for name, _ in found.columns), found.rows)

    def state() -> str:
        return state_of_rows(northwind, query)

    before = state()
    assert before.startswith("3 ")
    assert state() == before
    athena.execute(LINES.format(price="DECIMAL '8.99'"))
    after = state()
    assert after.startswith("3 ")
    assert after != before


def test_all_is_there_after_the_endpoint_was_killed(query_stack: QueryStack, quicksight: QuickSight) -> None:
    source = quicksight.data_source()
    quicksight.data_set(BOARD.id, BOARD.title, ROWS, source.arn)
    query_stack.kill("aws")
    try:
        with pytest.raises(Unreachable, match="Run `cdc-lake up`"):
            quicksight.data_source()
    finally:
        query_stack.repair()
    assert quicksight.data_source().outcome == "unchanged"
    assert quicksight.data_set(BOARD.id, BOARD.title, ROWS, source.arn).outcome == "unchanged"
    assert quicksight.refresh(BOARD.id).rows_ingested == 3


def test_an_engine_that_is_away_is_told_from_broken_sql(query_stack: QueryStack, quicksight: QuickSight) -> None:
    data_set = quicksight.data_set(BOARD.id, BOARD.title, ROWS, quicksight.data_source().arn)
    quicksight.refresh(BOARD.id, data_set.ingestion_id)
    query_stack.kill("trino")
    try:
        with pytest.raises(IngestionFailed, match="DATA_SOURCE_CONNECTION_FAILED"):
            quicksight.refresh(BOARD.id)
    finally:
        query_stack.repair()
    assert quicksight.refresh(BOARD.id).rows_ingested == 3
