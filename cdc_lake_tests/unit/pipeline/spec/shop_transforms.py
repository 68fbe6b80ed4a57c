"""Transforms of the shop's tables, as its YAML has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spec.transforms import Transform
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.postgres.table_columns import ColumnInfo

ORDERS = ("sales", "orders")
TABLES = {"orders": ["order_id"], "customers": ["customer_id", "country"]}
KEYS = {"orders": ["order_id"], "customers": ["customer_id"]}
RENAME = {"type": "ReplaceField", "table": "orders", "renames": {"total": "amount"}}
INSERT = {"type": "InsertField", "static": {"environment": "test"}, "topic": "message_topic"}
CAST = {"type": "Cast", "table": "orders", "spec": {"amount": "string"}}
KEY = {"type": "ValueToKey", "table": "orders", "fields": ["customer_id"]}
EXTRACT = {"type": "ExtractField$Key", "table": "orders", "field": "order_id"}
NOTE = ColumnInfo("note", "text", "text", True, 9, None, "base", False)


def transforms(*given: dict[str, Any]) -> list[Transform]:
    return TypeAdapter(list[Transform]).validate_python(list(given))


def transforming(shop: Shop, *given: dict[str, Any], deployment: str = "local") -> Pipeline:
    """Return the pipeline with these transforms; its orders have a note, its deployment a salt."""
    shop.postgres.has(*ORDERS, (*shop.postgres.columns(*ORDERS)[:3], NOTE), ("order_id",))
    shop.deployment = shop.deployment.model_copy(update={"profile": deployment})
    return replace(shop.pipeline, spec=shop.pipeline.spec.model_copy(update={"transforms": transforms(*given)}))
