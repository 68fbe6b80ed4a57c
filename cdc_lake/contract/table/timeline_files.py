"""The names of the files in a Hudi table's timeline, `<instant>.<action>` or `<instant>.<action>.<state>`."""

from __future__ import annotations

from cdc_lake.contract.objects.store import ObjectStore

COMMITS = ("commit", "deltacommit", "replacecommit")
"""The actions that write rows. The file of a completed one has no state."""


def names(store: ObjectStore, table_prefix: str) -> list[str]:
    """Return the names, without the folder, in the order of the keys."""
    folder = f"{table_prefix}.hoodie/"
    return [item.key.removeprefix(folder) for item in store.scan(folder, recursive=False)]
