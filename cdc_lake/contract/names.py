"""Where everything lies in the bucket: the one place that spells a key.

Here: prefixes, keys and their parsing. Not here: what the objects hold (manifest.py, schema.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError

# 20 digits hold any 64-bit offset, so keys sort as offsets do.
_DIGITS = 20
_PART = r"(?!\.{1,2}/)[A-Za-z0-9._-]+"
_OBJECT = re.compile(
    rf"raw/(?P<pipeline>{_PART})/(?P<topic>{_PART})/(?P<fields>(?:[^/=]+=[^/]*/)*)partition=(?P<partition>0|[1-9]\d*)/"
    r"(?P=topic)\+(?P=partition)\+(?P<first>\d{20})\+(?P<last>\d{20})\.(?P<ext>[a-z0-9.]+)",
    re.ASCII,
)
_EPOCH = re.compile(r"epoch=([1-9]\d*)/", re.ASCII)
_SAFE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ObjectName:
    """A raw object's name: one contiguous offset range, first and last record's offset, of one partition.

    From epoch 1 on the epoch is part of it: a topic that was made again has the same offsets anew.
    """

    pipeline: str
    topic: str
    partition: int
    first: int
    last: int
    extension: str
    epoch: int = 0

    @property
    def key(self) -> str:
        """`raw/<pipeline>/<topic>/[epoch=<n>/]partition=<p>/<topic>+<p>+<first>+<last>.<ext>`."""
        epoch = f"epoch={self.epoch}/" if self.epoch else ""
        return (
            f"{topic_prefix(self.pipeline, self.topic)}{epoch}partition={self.partition}/"
            f"{self.topic}+{self.partition}+{self.first:0{_DIGITS}d}+{self.last:0{_DIGITS}d}.{self.extension}"
        )

    @classmethod
    def parse(cls, key: str) -> ObjectName | None:
        """The name behind a key, or None where the key is not a raw object's."""
        found = _OBJECT.fullmatch(key)
        if found is None:
            return None
        epoch = _EPOCH.match(found["fields"])
        return cls(
            found["pipeline"],
            found["topic"],
            int(found["partition"]),
            int(found["first"]),
            int(found["last"]),
            found["ext"],
            int(epoch[1]) if epoch else 0,
        )


def checked(part: str, what: str) -> str:
    """A part of a key as it is; raises ContractError where it could leave its prefix."""
    if not _SAFE.fullmatch(part) or part in {".", ".."}:
        raise ContractError(
            f"{what} {part!r} can't be part of an object's key: use letters, digits, '.', '_' and '-' only"
        )
    return part


def pipeline_prefix(pipeline: str) -> str:
    """All that landing keeps of one pipeline."""
    return f"raw/{checked(pipeline, 'pipeline')}/"


def topic_prefix(pipeline: str, topic: str) -> str:
    """The raw objects and manifests of one topic."""
    return f"{pipeline_prefix(pipeline)}{checked(topic, 'topic')}/"


def manifest_prefix(pipeline: str, topic: str) -> str:
    """The manifest chain of one topic."""
    return f"{topic_prefix(pipeline, topic)}_manifests/"


def manifest_key(pipeline: str, topic: str, number: int) -> str:
    """The key of manifest `number`, the first being 1."""
    return f"{manifest_prefix(pipeline, topic)}{number:0{_DIGITS}d}.json"


def sink_prefix(pipeline: str) -> str:
    """Where a sink connector writes, unless its pipeline says otherwise."""
    return f"{pipeline_prefix(pipeline)}_sink/"


def schema_prefix(pipeline: str, table: str) -> str:
    """The captured schema versions of one source table (`schema.table`)."""
    return f"{pipeline_prefix(pipeline)}_schemas/{checked(table, 'table')}/"


def epoch_prefix(pipeline: str) -> str:
    """The epochs of one pipeline."""
    return f"{pipeline_prefix(pipeline)}_epochs/"


def epoch_key(pipeline: str, number: int, part: str = "") -> str:
    """The key of an epoch's beginning, or of what was found of it later: `complete`, `broken`."""
    return f"{epoch_prefix(pipeline)}{number:06d}{f'.{part}' if part else ''}.json"


def note_key(pipeline: str, stage: str, name: str) -> str:
    """What a stage noted of one of its assets (contract/notes.py)."""
    return f"{pipeline_prefix(pipeline)}_notes/{checked(stage, 'stage')}/{checked(name, 'asset')}.json"


def continuity_key(pipeline: str) -> str:
    """How far the stream of a pipeline was seen to be whole."""
    return f"{pipeline_prefix(pipeline)}_continuity.json"


def dead_letter_prefix(pipeline: str) -> str:
    """Records that could not be read, of one pipeline."""
    return f"dlq/{checked(pipeline, 'pipeline')}/"


def closed_letter_prefix(pipeline: str) -> str:
    """Dead letters that were replayed or dropped, of one pipeline."""
    return f"dlq-closed/{checked(pipeline, 'pipeline')}/"


def lake_prefix(pipeline: str, table: str | None = None) -> str:
    """One Hudi table, or all of a pipeline's."""
    base = f"lake/{checked(pipeline, 'pipeline')}/"
    return base if table is None else f"{base}{checked(table, 'table')}/"


def lease_key(pipeline: str, table: str) -> str:
    """The lease that fences the writers of one table; beside the tables, so that a reset keeps it last."""
    return f"leases/{checked(pipeline, 'pipeline')}/{checked(table, 'table')}.json"


def resnapshot_lease_key(pipeline: str) -> str:
    """The lease that keeps two resnapshots of a pipeline apart."""
    return f"leases/{checked(pipeline, 'pipeline')}/_resnapshot/pipeline.json"


def landing_lease_key(pipeline: str, topic: str) -> str:
    """The lease that keeps one topic's landing and a reset of its pipeline apart."""
    return f"leases/{checked(pipeline, 'pipeline')}/_landing/{checked(topic, 'topic')}.json"
