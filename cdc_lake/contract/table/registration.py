"""Store the last registration of a Parquet target's catalog table: the counterpart of a Hudi table's newest commit.

The table reads the landed objects directly, so nothing is committed to it. A registration adds partitions, columns and
the boundary of the view to the catalog. It is stored beside the raw objects, so that sensors need no catalog request.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, ValidationError

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table.timeline import Checkpoint, Commit

_STAGE = "lake"


class Registration(BaseModel):
    """The last registered manifest and schema version, the view's boundary (latest_rows.py), and the time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint: Checkpoint
    boundary: str
    instant: str

    @property
    def commit(self) -> Commit:
        """The registration as a Commit that wrote no files."""
        return Commit(self.instant, self.checkpoint, 0, 0, 0, 0, 0)


def new_instant() -> str:
    """Return the current time in UTC in the format of Hudi's instants, with milliseconds."""
    return f"{datetime.now(UTC):%Y%m%d%H%M%S%f}"[:17]


def load(store: ObjectStore, pipeline: str, lake_table: str) -> Registration | None:
    """Return the last registration; None if it is missing or unreadable: the next run then registers everything."""
    try:
        return Registration.model_validate(stage_state.read(store, _key(pipeline, lake_table)))
    except ValidationError:
        return None


def save(store: ObjectStore, pipeline: str, lake_table: str, registered: Registration) -> None:
    """Store a registration; the caller holds the table's lease."""
    stage_state.write(store, _key(pipeline, lake_table), registered.model_dump(mode="json"))


def _key(pipeline: str, lake_table: str) -> str:
    return object_names.stage_state_key(pipeline, _STAGE, lake_table)
