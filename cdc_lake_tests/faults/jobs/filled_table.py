"""Batches of rows that the fault tests deliver to a table, and the rows that they read back."""

from __future__ import annotations

from cdc_lake_tests.integration.jobs.change_records import event
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable


def fill(table: LakeTable, first: int, keys: int = 40) -> dict[int, int]:
    """Deliver one change of each key, and return the quantities by key."""
    changed = {key: first + key for key in range(keys)}
    table.deliver([event(key, "c", first + key, qty=qty) for key, qty in changed.items()])
    return changed


def rows(table: LakeTable) -> dict[object, object]:
    """Return the quantities by key as hudi-rs reads them; fail if a key is duplicated."""
    found = [(row["id"], row["qty"]) for row in table.by_hudi_rs()]
    assert len(found) == len(dict(found))
    return dict(found)
