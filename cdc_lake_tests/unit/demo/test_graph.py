"""Materialising stages for the demo: metadata, checks, and failures that name step and cause."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.demo.graph import Graph
from cdc_lake.pipeline import component
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import bound


@pytest.fixture
def graph(shop: World) -> Iterator[Graph]:
    """The shop's graph."""
    made = dg.Definitions.merge(component.build(shop.flow), dg.Definitions(resources=bound(**shop.resources)))
    with dg.DagsterInstance.ephemeral() as instance:
        yield Graph("shop", made, instance)


def test_the_assets_of_a_stage(graph: Graph) -> None:
    assert [key.path for key in graph.stage("raw")] == [["shop", "raw", "customers"], ["shop", "raw", "orders"]]
    assert graph.stage("dashboard") == []


def test_metadata_and_checks(shop: World, graph: Graph) -> None:
    shop.customer("ANNE")
    shop.order(1)
    shop.beat()
    done = graph.materialise("source", "raw")
    assert done.metadata["shop/raw/orders"]["dagster/row_count"] == 1
    assert done.checks["shop/source/orders:orders_have_customers"]
    assert done.checks["shop/raw/orders:watermark_fresh"]
    assert done.failed == {}


def test_a_check_that_fails_says_why(shop: World, graph: Graph) -> None:
    shop.order(1, customer_id="NOBODY")
    done = graph.materialise("source")
    assert {name for name, passed in done.checks.items() if not passed} == {"shop/source/orders:orders_have_customers"}
    assert "faults: 1" in done.failed["shop/source/orders:orders_have_customers"]


def test_a_blocking_check_that_fails_is_a_result_too(shop: World, graph: Graph) -> None:
    for number in range(3):
        shop.order(number)
    shop.land(shop.orders)
    shop.bucket.delete([item.key for item in shop.bucket.scan("raw/shop/shop.sales.orders/partition=0/")])
    done = graph.materialise("raw", "lake")
    assert "missing_or_changed" in done.failed["shop/raw/orders:manifests_contiguous"]
    assert "shop/lake/orders" not in done.metadata
    assert "shop/raw/orders" in done.metadata


def test_a_failed_step_is_named_with_its_cause(shop: World, graph: Graph) -> None:
    shop.order(1)
    shop.land(shop.orders)
    shop.kafka.make(shop.orders.topic)
    with pytest.raises(ContractError) as caught:
        graph.materialise("raw")
    said = caught.value.user_message
    assert said.startswith("step shop__raw__orders of pipeline shop failed: ")
    assert "was deleted and re-created" in said
    assert "Traceback" not in said
