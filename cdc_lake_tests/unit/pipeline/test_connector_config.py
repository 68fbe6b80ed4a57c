"""The source connector's configuration: which columns it omits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.connector_config import base_config, connector_config
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.postgres.table_columns import ColumnInfo

OMIT = "column.exclude.list"
ORDERS = ("sales", "orders")


def excluding(pipeline: Pipeline, **columns: list[str]) -> Pipeline:
    """Return the pipeline with exclude_columns, by table."""
    tables = [
        table.model_copy(update={"exclude_columns": columns.get(table.name, [])}) for table in pipeline.spec.tables
    ]
    return replace(pipeline, spec=pipeline.spec.model_copy(update={"tables": tables}))


def with_format(pipeline: Pipeline, name: str) -> Pipeline:
    """Return the pipeline with this format of its topics."""
    stream = pipeline.spec.stream.model_copy(
        update={"format": name, "registry": "apicurio" if name == "avro" else None}
    )
    return replace(pipeline, spec=pipeline.spec.model_copy(update={"stream": stream}))


def test_a_connector_that_omits_no_column_has_no_list(shop: Shop) -> None:
    assert OMIT not in connector_config(shop.pipeline, shop.source, shop.deployment)


@pytest.mark.parametrize("stream", ["json", "avro"])
def test_excluded_columns_and_those_that_cannot_be_captured_are_omitted(shop: Shop, stream: str) -> None:
    more = ColumnInfo("Odd, one", "integer", "integer", True, 9, None, "base", True, virtual=True)
    shop.postgres.has(*ORDERS, (*shop.postgres.columns(*ORDERS), more), ("order_id",))
    pipeline = with_format(excluding(shop.pipeline, customers=["country"]), stream)
    config = connector_config(pipeline, shop.source, shop.deployment)
    names = ["orders.order_id", "orders.odd, one", "orders.Odd, one", "customers.country", "orders.country"]
    omitted = [
        name
        for pattern in config[OMIT].split(",")
        for name in names
        if re.fullmatch(pattern, f"sales.{name}", re.IGNORECASE)
    ]
    assert omitted == ["orders.Odd, one", "customers.country"]
    assert {**config, OMIT: ""} == {**base_config(pipeline, shop.source, shop.deployment), OMIT: ""}


def test_an_excluded_column_that_the_table_lacks_is_rejected_unless_the_connector_is_only_stopped(shop: Shop) -> None:
    pipeline = excluding(shop.pipeline, orders=["none"])
    with pytest.raises(ContractError, match=r"table sales\.orders: it has no column none"):
        connector_config(pipeline, shop.source, shop.deployment)
    assert base_config(pipeline, shop.source, shop.deployment)["topic.prefix"] == "shop"
