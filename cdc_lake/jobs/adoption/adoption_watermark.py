"""Find the watermark of adopted records. A sink connector buffers records, so a run does not reach the topic's ends.

Everything that the source committed before a watermark is below the topic's ends that were read with it. Each run
stores both, and a manifest gets the newest watermark whose ends are adopted.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.landing.land_spec import LandSpec

_MAX_STORED = 200


class _WatermarkAtEnds(BaseModel):
    model_config = ConfigDict(frozen=True)

    ends: dict[int, int]
    watermark: Watermark


class _StoredWatermarks(BaseModel):
    """The stored watermarks; they are valid for this topic id and epoch only."""

    model_config = ConfigDict(frozen=True)

    topic_id: str
    epoch: int
    seen: tuple[_WatermarkAtEnds, ...] = ()


def reached_watermark(
    store: ObjectStore, spec: LandSpec, head: Manifest | None, reached: Sequence[Span]
) -> Watermark | None:
    """Return the newest watermark whose ends are adopted at `reached`; None without one, or if `head` has it already.

    Also stores the watermark and the ends of this run, for later runs.
    """
    key = object_names.stage_state_key(spec.pipeline, "adoption", spec.topic)
    seen = _with_own(_stored(store, key, spec), spec)
    next_offsets = {span.partition: span.next for span in reached}
    done = [each for each in seen if all(next_offsets.get(partition, 0) >= end for partition, end in each.ends.items())]
    newest = max((each.watermark for each in done), key=lambda each: each.lsn, default=None)
    kept = [each for each in seen if newest is None or each.watermark.lsn >= newest.lsn]
    if len(kept) > _MAX_STORED:  # a long backlog: drop every second one, and keep the newest
        kept = [*kept[:-1:2], kept[-1]]
    stored = _StoredWatermarks(topic_id=spec.topic_id, epoch=spec.epoch, seen=tuple(kept))
    stage_state.write(store, key, stored.model_dump(mode="json"))
    before = None if head is None else head.watermark
    return None if newest is None or (before is not None and newest.lsn <= before.lsn) else newest


def _stored(store: ObjectStore, key: str, spec: LandSpec) -> tuple[_WatermarkAtEnds, ...]:
    try:
        stored = _StoredWatermarks.model_validate(stage_state.read(store, key))
    except ValidationError:  # missing or damaged: previous watermarks are not known
        return ()
    return stored.seen if (stored.topic_id, stored.epoch) == (spec.topic_id, spec.epoch) else ()


def _with_own(seen: tuple[_WatermarkAtEnds, ...], spec: LandSpec) -> tuple[_WatermarkAtEnds, ...]:
    if spec.watermark is None:
        return seen
    own = _WatermarkAtEnds(ends=dict(spec.ends), watermark=spec.watermark)
    return (*(each for each in seen if each.ends != own.ends), own)
