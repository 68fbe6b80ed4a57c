"""Northwind's QuickSight templates with their SQL, and the query that detects changed rows."""

from __future__ import annotations

import pytest

from cdc_lake.dashboard import DashboardError, DashboardSpec, Rows
from cdc_lake.dashboard.quicksight import row_checksum, templates

from .northwind import SPEC


def test_tables_get_their_database_and_comments_are_removed() -> None:
    assert "FROM datalake.order_items" in templates(SPEC, "x").sql
    assert SPEC.quicksight is not None
    sql = "WITH l AS (SELECT * FROM order_items) SELECT * FROM l -- all\n"
    other = SPEC.model_copy(update={"quicksight": SPEC.quicksight.model_copy(update={"sql": sql})})
    assert "FROM datalake.order_items" in templates(other, "x").sql
    assert templates(other, "x").sql.endswith("FROM l")


def test_one_query_detects_changed_rows() -> None:
    queries: list[str] = []

    def query(sql: str) -> Rows:
        queries.append(sql)
        return Rows(("row_count", "row_checksum"), ((2155, "1F00"),))

    assert row_checksum(SPEC, query) == "2155 1F00"
    assert len(queries) == 1
    assert 'CAST(ROW("customer_id", "order_id", "quantity", "unit_price", "discount") AS json)' in queries[0]


def test_a_dashboard_without_templates_cannot_be_published(spec: DashboardSpec) -> None:
    with pytest.raises(DashboardError, match="'Shop' in QuickSight: its YAML has no field quicksight"):
        templates(spec, "x")
