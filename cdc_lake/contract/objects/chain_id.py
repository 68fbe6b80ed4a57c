"""The id of a pipeline's current manifest chain; each reset begins a new chain with a new id.

The id is part of the keys of manifests and raw objects. A landing run reads it once, at its start: if a reset begins a
new chain meanwhile, the run writes below the id of the old chain, which no reader reads. The first chain of a pipeline
has no id, because earlier releases wrote keys without an id.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cdc_lake.contract.errors import ObjectDamagedError, RaceLostError, reset_advice
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, PreconditionFailedError


class _Current(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    chain: str = Field(pattern=r"^[A-Za-z0-9]+$")
    began_at: datetime


def current(store: ObjectStore, pipeline: str) -> str:
    """Return the id of the pipeline's current chain, empty for the first one. Raises ObjectDamagedError."""
    key = object_names.chain_key(pipeline)
    stored = store.get(key)
    try:
        return "" if stored is None else _Current.model_validate_json(stored.body).chain
    except ValidationError as error:
        raise ObjectDamagedError(
            f"Cannot find the manifests of pipeline {pipeline}: {key} is damaged ({error.errors()[0]['msg']}). Restore "
            f"the object, or {reset_advice(pipeline)}."
        ) from error


def renew(store: ObjectStore, pipeline: str) -> str:
    """Begin a new chain and return its id. The caller must hold the pipeline's landing leases.

    Raises RaceLostError if another reset begins a chain at the same moment.
    """
    key, chain = object_names.chain_key(pipeline), secrets.token_hex(8)
    body = _Current(chain=chain, began_at=datetime.now(UTC)).model_dump_json(indent=1).encode()
    stored = store.get(key)
    try:
        if stored is None:
            store.put_new(key, body)
        else:
            store.replace(key, body, stored.etag)
    except PreconditionFailedError as error:
        found = store.get(key)
        # A put that is retried after a lost response finds its own object.
        if found is None or found.body != body:
            raise RaceLostError(
                f"Cannot begin a new manifest chain of pipeline {pipeline}: another reset replaced {key} at the same "
                "moment. Wait for it to end, then run the reset again."
            ) from error
    return chain
