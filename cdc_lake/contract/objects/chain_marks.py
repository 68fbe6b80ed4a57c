"""Positions in a manifest chain that are stored beside it, so that a run reads only what is new.

The chain is authoritative, a mark is a cache: a mark that is missing, unreadable or of another chain costs time only.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore

Kind = Literal["counted", "verified"]


class Mark(BaseModel):
    """A manifest of a chain: its number and attempt; `records` counts the chain's records up to and including it."""

    model_config = ConfigDict(frozen=True)

    chain: str
    manifest: int
    attempt: str
    records: int


def load(store: ObjectStore, kind: Kind, pipeline: str, topic: str, chain: str) -> Mark | None:
    """Return the stored mark, None where there is no mark of this chain."""
    try:
        found = Mark.model_validate(stage_state.read(store, object_names.stage_state_key(pipeline, kind, topic)))
    except ValidationError:  # not stored yet, or damaged: the caller computes it again from the chain
        return None
    return found if found.chain == chain else None


def save(store: ObjectStore, kind: Kind, pipeline: str, topic: str, mark: Mark) -> None:
    """Store a mark; it replaces the previous one."""
    stage_state.write(store, object_names.stage_state_key(pipeline, kind, topic), mark.model_dump(mode="json"))
