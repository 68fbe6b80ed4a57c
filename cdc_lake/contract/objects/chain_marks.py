"""Stored positions in a manifest chain, so that a run reads only new manifests.

The chain is authoritative, and a mark is a cache: if it is missing, unreadable or from another chain, the run starts at
the beginning of the chain.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore

Kind = Literal["counted", "verified"]
"""counted: the number of records up to the manifest is known; verified: the objects up to it are verified."""


class Mark(BaseModel):
    """A position in a chain: the number and attempt of a manifest, and the number of records up to and including it."""

    model_config = ConfigDict(frozen=True)

    chain: str
    manifest: int
    attempt: str
    records: int


def load(store: ObjectStore, kind: Kind, pipeline: str, topic: str, chain: str) -> Mark | None:
    """Return the stored mark; None if this chain has no mark."""
    try:
        found = Mark.model_validate(stage_state.read(store, object_names.stage_state_key(pipeline, kind, topic)))
    except ValidationError:  # missing or unreadable: the caller recomputes the mark from the chain
        return None
    return found if found.chain == chain else None


def save(store: ObjectStore, kind: Kind, pipeline: str, topic: str, mark: Mark) -> None:
    """Store a mark; it replaces the previous one."""
    stage_state.write(store, object_names.stage_state_key(pipeline, kind, topic), mark.model_dump(mode="json"))
