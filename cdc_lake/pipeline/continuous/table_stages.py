"""The stages of a table in continuous mode: a loop that lands its topic, and one for each target that applies it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cdc_lake.pipeline.assets import lake, raw
from cdc_lake.pipeline.assets.lake import Batch, LakeSystems
from cdc_lake.pipeline.continuous.stage_loop import StageLoop
from cdc_lake.pipeline.operations.land_and_apply import LandResult
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spark_jobs.small_landings import SMALL_LANDING_OFFSETS

_POLL_SECONDS, _POLL_SECONDS_PER_TABLE = 0.1, 0.02
"""The end of a topic is read every _POLL_SECONDS. A pipeline with many tables reads it less often, after
_POLL_SECONDS_PER_TABLE for each table, because a request takes some milliseconds of this process's time."""
_IDLE_ATTEMPT_SECONDS = 10.0
"""The interval of landing and apply attempts while there are no new records. They detect that the topic was deleted,
that another run has landed records, and that the source's schema has changed."""


@dataclass(frozen=True)
class TableStages:
    """The loops of one table; `lakes` has the table of each target with its loop."""

    table: PipelineTable
    raw: StageLoop[LandResult]
    lakes: Sequence[tuple[PipelineTable, StageLoop[Batch]]]


def build(
    table: PipelineTable, systems: LakeSystems, landings: threading.Semaphore, applies: threading.Semaphore
) -> TableStages:
    """Return the table's loops, which are not started.

    A landing wakes the loops that apply it, and an apply wakes the loop that lands. The semaphores limit how many
    tables are landed, and how many are applied, at the same time.
    """
    lakes: list[tuple[PipelineTable, StageLoop[Batch]]] = []

    def landed() -> None:
        for _, loop in lakes:
            loop.wake()

    poll = max(_POLL_SECONDS, _POLL_SECONDS_PER_TABLE * len(table.pipeline.tables))
    land = StageLoop(f"land {table.name}", _land(table, systems, lakes), landings, poll, landed)
    for each in table.in_targets:
        loop: StageLoop[Batch] = StageLoop(
            f"apply {each.lake_table}", _apply(each, systems), applies, _IDLE_ATTEMPT_SECONDS, land.wake
        )
        lakes.append((each, loop))
    return TableStages(table, land, lakes)


def _land(
    table: PipelineTable, systems: LakeSystems, lakes: Sequence[tuple[PipelineTable, StageLoop[Batch]]]
) -> Callable[[], LandResult | None]:
    ends: Mapping[int, int] = {}
    attempted_at = 0.0

    def step() -> LandResult | None:
        nonlocal ends, attempted_at
        found = systems.kafka.end_offsets(table.topic)
        new = sum(end - ends.get(partition, 0) for partition, end in found.items())
        recent = time.monotonic() < attempted_at + _IDLE_ATTEMPT_SECONDS
        # While all targets are busy, landing later delays no record, and makes fewer and larger batches. A target that
        # fails or is slow delays a landing by at most _IDLE_ATTEMPT_SECONDS.
        if recent and (new == 0 or (0 < new <= SMALL_LANDING_OFFSETS and all(loop.busy for _, loop in lakes))):
            return None
        landed = raw.land(
            table, systems.postgres, systems.kafka, systems.store, systems.jobs, systems.owner, new_records=new > 0
        )
        ends, attempted_at = landed.input.state.ends, time.monotonic()
        return landed if landed.report is not None else None

    return step


def _apply(table: PipelineTable, systems: LakeSystems) -> Callable[[], Batch | None]:
    def step() -> Batch | None:
        batch = lake.apply(table, systems)
        return batch if batch.has_changes else None

    return step
