"""The newest commit of a lake table of either format: a Hudi commit, or the registration of raw objects."""

from __future__ import annotations

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import registration, timeline
from cdc_lake.pipeline.pipeline_table import PipelineTable


def newest(store: ObjectStore, table: PipelineTable) -> timeline.Commit | None:
    """Return the newest commit with a checkpoint; None before the first one. Raises as timeline.last_commit() does."""
    if table.is_hudi:
        return timeline.last_commit(store, table.lake_prefix)
    registered = registration.load(store, table.pipeline.name, table.lake_table)
    return None if registered is None else registered.commit
