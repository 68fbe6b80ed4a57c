"""Read and write small JSON objects in which a stage stores its state; the next run skips work that is already done.

The state is not read from Dagster's event log, because a run from another Dagster home, or from a shell, has no such
log.
"""

from __future__ import annotations

import json
from typing import Any

from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError


def read(store: ObjectStore, key: str) -> dict[str, Any]:
    """Return the stored state; empty if it is missing or unreadable: the stage then repeats the work."""
    stored = store.get(key)
    try:
        found = json.loads(stored.body) if stored else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def write(store: ObjectStore, key: str, state: dict[str, Any]) -> None:
    """Store the state; it replaces the previous one. Of two concurrent writes, one wins."""
    body = json.dumps(state, indent=1, sort_keys=True).encode()
    stored = store.get(key)
    try:
        if stored is None:
            store.put_new(key, body)
        elif stored.body != body:
            store.replace(key, body, stored.etag)
    except PreconditionFailedError:
        return  # another run stored its state, which the next run can use as well
