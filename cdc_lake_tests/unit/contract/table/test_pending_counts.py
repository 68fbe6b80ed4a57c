"""Counts of consecutive runs in which a key was pending."""

from __future__ import annotations

import json

from cdc_lake.contract.table import pending_counts
from cdc_lake_tests.memory_store import MemoryStore

KEY = "raw/shop/_pending/orders.json"


def test_runs_in_a_row_are_counted_by_key() -> None:
    store = MemoryStore()
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a", "b"]) == {"a": 1, "b": 1}
    assert pending_counts.count_pending_run(store, "shop", "orders", ["b", "c"]) == {"b": 2, "c": 1}
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a", "b"]) == {"a": 1, "b": 3}
    assert pending_counts.count_pending_run(store, "shop", "customers", ["a"]) == {"a": 1}
    assert json.loads(store.objects[KEY].body) == {"runs": {"a": 1, "b": 3}}


def test_a_run_that_judged_all_keys_starts_again() -> None:
    store = MemoryStore()
    pending_counts.count_pending_run(store, "shop", "orders", ["a"])
    assert pending_counts.count_pending_run(store, "shop", "orders", []) == {}
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a"]) == {"a": 1}


def test_where_nothing_is_ever_pending_nothing_is_stored() -> None:
    store = MemoryStore()
    assert pending_counts.count_pending_run(store, "shop", "orders", []) == {}
    assert store.objects == {}


def test_a_damaged_object_starts_again() -> None:
    store = MemoryStore()
    store.write(KEY, b"{")
    assert pending_counts.count_pending_run(store, "shop", "orders", ["a"]) == {"a": 1}
