"""Checks of connector, slot and topic: they pass on a healthy stream and fail for each fault."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from cdc_lake.pipeline.checks import topic as topic_checks
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

MB = 2**20


def check(shop: Shop, name: str, **resources: object) -> dg.AssetCheckResult:
    """Evaluate one check of the orders' topic."""
    found = {each.check_key.name: each for each in topic_checks.build(shop.orders)}
    return evaluate(found[name], **resources)


def test_a_running_connector_passes(shop: Shop) -> None:
    assert check(shop, "connector_running", connect=shop.connect).passed


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED", "UNASSIGNED"])
def test_a_connector_in_another_state_fails(shop: Shop, state: str) -> None:
    shop.connect.run(shop.pipeline.connector, state)
    found = check(shop, "connector_running", connect=shop.connect)
    assert not found.passed
    assert found.metadata["state"].value == state


def test_an_unknown_number_of_tasks_is_shown_as_not_reported(shop: Shop) -> None:
    shop.connect.run_uncounted(shop.pipeline.connector)
    found = check(shop, "connector_running", connect=shop.connect)
    assert found.passed
    assert str(found.metadata["tasks"].value).startswith("not reported")


def test_a_failed_connector_shows_its_causes(shop: Shop) -> None:
    shop.connect.fail(shop.pipeline.connector, "the slot is gone")
    found = check(shop, "connector_running", connect=shop.connect)
    assert not found.passed
    assert found.metadata["causes"].value == ["the slot is gone"]


def test_a_missing_connector_fails(shop: Shop) -> None:
    shop.connect.delete(shop.pipeline.connector)
    assert not check(shop, "connector_running", connect=shop.connect).passed


def test_a_healthy_slot_passes(shop: Shop) -> None:
    assert check(shop, "slot_healthy", postgres=shop.postgres).passed


@pytest.mark.parametrize(
    "fault",
    [
        {"active": False},
        {"retained_bytes": MB},  # the YAML's bound is 1 MB
        {"invalidation_reason": "wal_removed", "wal_status": "lost"},
        {"retained_bytes": None, "restart_lsn": None},
    ],
    ids=["inactive", "over the bound", "invalidated", "without WAL"],
)
def test_an_unhealthy_slot_fails(shop: Shop, fault: dict[str, Any]) -> None:
    shop.postgres.put_slot(shop.pipeline.slot, **fault)
    assert not check(shop, "slot_healthy", postgres=shop.postgres).passed


def test_a_slot_just_under_the_wal_bound_passes(shop: Shop) -> None:
    shop.postgres.put_slot(shop.pipeline.slot, retained_bytes=MB - 1)
    assert check(shop, "slot_healthy", postgres=shop.postgres).passed


def test_a_missing_slot_fails(shop: Shop) -> None:
    shop.postgres.drop_slot(shop.pipeline.slot)
    found = check(shop, "slot_healthy", postgres=shop.postgres)
    assert not found.passed
    assert found.metadata["slot"].value == "there is no slot cdc_lake_shop"


@pytest.mark.parametrize("retention", ["43200000", "43200001", "-1"])
def test_a_topic_that_keeps_the_replay_window_passes(shop: Shop, retention: str) -> None:
    shop.kafka.make(shop.orders.topic, config={"retention.ms": retention})
    assert check(shop, "topic_contract", kafka=shop.kafka).passed


@pytest.mark.parametrize(
    ("config", "partitions"),
    [
        ({"retention.ms": "43199999"}, 1),
        ({"retention.bytes": "1000000"}, 1),
        ({"cleanup.policy": "compact"}, 1),
        ({"cleanup.policy": "compact,delete"}, 1),
        ({}, 2),
    ],
    ids=["retention", "bytes", "compaction", "both policies", "partitions"],
)
def test_a_topic_with_other_settings_fails(shop: Shop, config: dict[str, str], partitions: int) -> None:
    shop.kafka.make(shop.orders.topic, partitions, config)
    assert not check(shop, "topic_contract", kafka=shop.kafka).passed


def test_a_missing_topic_fails(shop: Shop) -> None:
    shop.kafka.delete_topic(shop.orders.topic)
    assert not check(shop, "topic_contract", kafka=shop.kafka).passed
