"""Metadata that Dagster's catalog shows."""

from __future__ import annotations

from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.pipeline.assets import standard_metadata


def test_columns_that_the_lake_adds_have_descriptions() -> None:
    own = Column(name="order_id", type="integer", nullable=False)
    table = TableSchema(version=1, table="shop.orders", columns=(own,), key=("order_id",))
    shown = standard_metadata.schema(table.lake_columns()).columns
    assert [column.name for column in shown if not column.description] == ["order_id"]


def test_floats_are_rounded_to_three_places() -> None:
    shown = standard_metadata.values({"seconds": 1.7146834819996002, "events": 3, "changes": "none"})
    assert {name: value.value for name, value in shown.items()} == {"seconds": 1.715, "events": 3, "changes": "none"}
