"""What a stage keeps beside its data so that it finds, wherever it runs next, that nothing is new.

Dagster's own records are of one Dagster home; whoever materialises from another, or from a shell without one, has none.
"""

from __future__ import annotations

import json
from typing import Any

from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError


def read(store: ObjectStore, key: str) -> dict[str, Any]:
    """The note; empty where there is none, and where it can't be read: what it would save is done again."""
    stored = store.get(key)
    try:
        found = json.loads(stored.body) if stored else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def write(store: ObjectStore, key: str, note: dict[str, Any]) -> None:
    """Put the note in the place of the one before. Of two at the same moment either stays."""
    body = json.dumps(note, indent=1, sort_keys=True).encode()
    stored = store.get(key)
    try:
        if stored is None:
            store.put_new(key, body)
        elif stored.body != body:
            store.replace(key, body, stored.etag)
    except PreconditionFailedError:
        return  # another run's note, which the next one compares with as it would with this one
