"""The slot of a small pipeline, and its repair by a resnapshot."""

from __future__ import annotations

from cdc_lake_tests.faults.stream.small_pipeline import SmallPipeline
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from resources.postgres.slots import SlotInfo


def slot(pipeline: SmallPipeline) -> SlotInfo | None:
    """Return the pipeline's slot, if it exists."""
    found: SlotInfo | None = pipeline.loaded.source_postgres(pipeline.resources["postgres"]).slot(pipeline.loaded.slot)
    return found


def existing_slot(pipeline: SmallPipeline) -> SlotInfo:
    """Return the pipeline's slot, which must exist."""
    found = slot(pipeline)
    assert found is not None
    return found


def assert_repaired_by_resnapshot(pipeline: SmallPipeline, count_trials: CountTrials) -> None:
    """Require that a resnapshot gives the lake the source's rows."""
    before = pipeline.epoch.number
    pipeline.resnapshot()
    assert pipeline.epoch.number == before + 1
    assert pipeline.in_lake() == pipeline.at_source()
    count_trials("losses of the source's stream, reported and repaired", 1)
