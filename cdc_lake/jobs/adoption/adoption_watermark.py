"""How far what is adopted has come: a sink connector holds records back, so no run reaches the ends that it fixed.

That all which the source committed before a watermark lies before the ends that were read with it stays true. So each
run notes both, and a manifest gets the newest watermark whose ends are adopted.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.landing.land import LandSpec

_MAX_NOTED = 200


class _WatermarkAtEnds(BaseModel):
    model_config = ConfigDict(frozen=True)

    ends: dict[int, int]
    watermark: Watermark


class _Note(BaseModel):
    """Of another topic, or another epoch, a watermark says nothing."""

    model_config = ConfigDict(frozen=True)

    topic_id: str
    epoch: int
    seen: tuple[_WatermarkAtEnds, ...] = ()


def reached_watermark(
    store: ObjectStore, spec: LandSpec, head: Manifest | None, reached: Sequence[Span]
) -> Watermark | None:
    """The newest watermark that the chain has passed once it goes to `reached`; None where that is not known to be
    newer than the one of `head`. Notes the run's own.
    """
    key = object_names.stage_state_key(spec.pipeline, "adoption", spec.topic)
    seen = _with_own(_noted(store, key, spec), spec)
    there = {span.partition: span.next for span in reached}
    done = [each for each in seen if all(there.get(partition, 0) >= end for partition, end in each.ends.items())]
    newest = max((each.watermark for each in done), key=lambda each: each.lsn, default=None)
    kept = [each for each in seen if newest is None or each.watermark.lsn >= newest.lsn]
    if len(kept) > _MAX_NOTED:  # a long backlog: any of them will do, the last one most
        kept = [*kept[:-1:2], kept[-1]]
    note = _Note(topic_id=spec.topic_id, epoch=spec.epoch, seen=tuple(kept))
    stage_state.write(store, key, note.model_dump(mode="json"))
    before = None if head is None else head.watermark
    return None if newest is None or (before is not None and newest.lsn <= before.lsn) else newest


def _noted(store: ObjectStore, key: str, spec: LandSpec) -> tuple[_WatermarkAtEnds, ...]:
    try:
        note = _Note.model_validate(stage_state.read(store, key))
    except ValidationError:  # none yet, or damaged: what was seen before is not known then
        return ()
    return note.seen if (note.topic_id, note.epoch) == (spec.topic_id, spec.epoch) else ()


def _with_own(seen: tuple[_WatermarkAtEnds, ...], spec: LandSpec) -> tuple[_WatermarkAtEnds, ...]:
    if spec.watermark is None:
        return seen
    own = _WatermarkAtEnds(ends=dict(spec.ends), watermark=spec.watermark)
    return (*(each for each in seen if each.ends != own.ends), own)
