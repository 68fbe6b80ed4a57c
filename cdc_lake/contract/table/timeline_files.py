"""The names of the files in a Hudi table's timeline, `<instant>.<action>` or `<instant>.<action>.<state>`."""

from __future__ import annotations

from cdc_lake.contract.objects.store import ObjectStore


def names(store: ObjectStore, table_prefix: str) -> list[str]:
    """Return the names, without the folder, in the order of the keys."""
    folder = f"{table_prefix}.hoodie/"
    return [item.key.removeprefix(folder) for item in store.scan(folder, recursive=False)]
