"""Materialisation of stages for the demo: metadata, checks, and errors that name step and cause."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.demo.graph import Graph
from cdc_lake.pipeline import component
from cdc_lake_tests.fakes.dagster import fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


@pytest.fixture
def graph(shop: Shop) -> Iterator[Graph]:
    """The shop's asset graph."""
    definitions = dg.Definitions.merge(
        component.build(shop.pipeline), dg.Definitions(resources=fake_resources(**shop.resources))
    )
    with dg.DagsterInstance.ephemeral() as instance:
        yield Graph("shop", definitions, instance)


def test_stage_returns_the_assets_of_a_stage(graph: Graph) -> None:
    assert [key.path for key in graph.stage("raw")] == [["shop", "raw", "customers_raw"], ["shop", "raw", "orders_raw"]]
    assert graph.stage("dashboard") == []


def test_stage_returns_the_assets_of_one_table(graph: Graph) -> None:
    assert [key.path for key in graph.stage("lake", "orders")] == [["shop", "lake", "orders_lake"]]


def test_light_checks_leave_out_those_that_read_whole_tables(shop: Shop, graph: Graph) -> None:
    shop.order(1)
    result = graph.materialise("source", table="orders", light=True)
    assert set(result.metadata) == {"shop/source/orders_source"}
    assert set(result.checks) == {"shop/source/orders_source:truncate_refused"}


def test_materialise_returns_metadata_and_checks(shop: Shop, graph: Graph) -> None:
    shop.customer("ANNE")
    shop.order(1)
    shop.write_heartbeat()
    result = graph.materialise("source", "raw")
    assert result.metadata["shop/raw/orders_raw"]["dagster/row_count"] == 1
    assert result.checks["shop/source/orders_source:orders_have_customers"]
    assert result.checks["shop/raw/orders_raw:watermark_fresh"]
    assert result.failed == {}


def test_a_failed_check_contains_its_metadata(shop: Shop, graph: Graph) -> None:
    shop.order(1, customer_id="NOBODY")
    result = graph.materialise("source")
    assert {name for name, passed in result.checks.items() if not passed} == {
        "shop/source/orders_source:orders_have_customers"
    }
    assert "faults: 1" in result.failed["shop/source/orders_source:orders_have_customers"]


def test_a_failed_blocking_check_is_returned_and_stops_later_stages(shop: Shop, graph: Graph) -> None:
    for number in range(3):
        shop.order(number)
    shop.land(shop.orders)
    shop.bucket.delete([item.key for item in shop.bucket.scan("raw/shop/shop.sales.orders/partition=0/")])
    result = graph.materialise("raw", "lake")
    assert "missing_or_changed" in result.failed["shop/raw/orders_raw:manifests_contiguous"]
    assert "shop/lake/orders_lake" not in result.metadata
    assert "shop/raw/orders_raw" in result.metadata


def test_a_failed_step_is_named_with_its_cause(shop: Shop, graph: Graph) -> None:
    shop.order(1)
    shop.land(shop.orders)
    shop.kafka.make(shop.orders.topic)
    with pytest.raises(ContractError) as caught:
        graph.materialise("raw")
    message = caught.value.user_message
    assert message.startswith("Cannot materialise pipeline shop: step shop__raw__orders_raw failed: ")
    assert "was deleted and re-created" in message
    assert "Traceback" not in message
