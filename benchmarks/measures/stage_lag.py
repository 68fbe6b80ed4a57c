"""Where the time from a source commit to a query's answer goes: Kafka, raw object, start of the lake's commit, answer.

Computed after a run from what each stage has recorded: the record's timestamp in Kafka, the time in the manifest, and
the instant of the Hudi commit, which is the time at which Hudi began to write.
"""

from __future__ import annotations

import bisect
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.table import history, instants, timeline
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.pipeline_table import PipelineTable


@dataclass(frozen=True)
class Times:
    """When a change was in each stage, in seconds since 1970."""

    committed: float
    topic: float
    raw: float
    lake_begun: float
    answered: float


def medians(times: Sequence[Times]) -> Mapping[str, float]:
    """Return the median seconds that the changes spent between two stages."""
    names = list(Times.__dataclass_fields__)
    return {
        f"{before} to {after}": statistics.median(getattr(each, after) - getattr(each, before) for each in times)
        for before, after in pairwise(names)
    }


def of_changes(
    table: PipelineTable,
    resources: Mapping[str, Any],
    key: Mapping[str, object],
    committed: Sequence[float],
    answered: Sequence[float],
) -> list[Times]:
    """Return the times of the newest changes of one key, oldest first.

    `committed` has the times at which the key's changes were committed, and `answered` those of the first answers with
    them; changes without an answer are left out. Raises RuntimeError if the topic has another number of changes.
    """
    store, kafka = location(resources["store"]).store(), resources["kafka"]
    records = [
        message
        for message in kafka.read(table.topic, kafka.ranges(table.topic))
        if message.value and key.items() <= json.loads(message.value).items()
    ][-len(committed) :]
    if len(records) != len(committed):
        raise RuntimeError(f"topic {table.topic} has {len(records)} changes of {key}, not {len(committed)}")
    manifests = list(Chain(store, table.pipeline.name, table.topic).since(0))
    ends = [manifest.next_offsets()[0] for manifest in manifests]
    commits = [timeline.commit_at(store, table.lake_prefix, at) for at in history.commits(store, table.lake_prefix)]
    applied = [(commit.checkpoint.manifest, commit.instant) for commit in commits if commit.checkpoint is not None]
    reached = [manifest for manifest, _ in applied]
    times = []
    for record, at, seen in zip(records, committed, answered, strict=False):
        manifest = manifests[bisect.bisect_right(ends, record.offset)]
        instant = applied[bisect.bisect_left(reached, manifest.number)][1]
        times.append(
            Times(
                committed=at,
                topic=(record.timestamp_ms or 0) / 1000,
                raw=manifest.committed_at.timestamp(),
                lake_begun=instants.time_of(instant).timestamp(),
                answered=seen,
            )
        )
    return times
