"""Counts of consecutive runs in which a key was pending."""

from __future__ import annotations

import json

from cdc_lake.contract.table import pending_counts
from cdc_lake_tests.helpers.memory_store import MemoryStore

KEY = "raw/shop/_pending/orders.json"


def test_consecutive_runs_are_counted_by_key() -> None:
    store = MemoryStore()
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a", "b"]) == {"a": 1, "b": 1}
    assert pending_counts.count_pending_run(store, "shop", "orders", ["b", "c"]) == {"b": 2, "c": 1}
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a", "b"]) == {"a": 1, "b": 3}
    assert pending_counts.count_pending_run(store, "shop", "customers", ["a"]) == {"a": 1}
    assert json.loads(store.objects[KEY].body) == {"runs": {"a": 1, "b": 3}}


def test_a_run_without_pending_keys_resets_the_counts() -> None:
    store = MemoryStore()
    pending_counts.count_pending_run(store, "shop", "orders", ["a"])
    assert pending_counts.count_pending_run(store, "shop", "orders", []) == {}
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a"]) == {"a": 1}


def test_without_pending_keys_nothing_is_stored() -> None:
    store = MemoryStore()
    assert pending_counts.count_pending_run(store, "shop", "orders", []) == {}
    assert store.objects == {}


def test_a_damaged_object_resets_the_counts() -> None:
    store = MemoryStore()
    store.write(KEY, b"{")
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a"]) == {"a": 1}
