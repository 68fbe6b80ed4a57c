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
_SAFE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ObjectName:
    """A raw object's name: one contiguous offset range, first and last record's offset, of one partition."""

    pipeline: str
    topic: str
    partition: int
    first: int
    last: int
    extension: str

    @property
    def key(self) -> str:
        """`raw/<pipeline>/<topic>/partition=<p>/<topic>+<p>+<first>+<last>.<ext>`."""
        return (
            f"{topic_prefix(self.pipeline, self.topic)}partition={self.partition}/"
            f"{self.topic}+{self.partition}+{self.first:0{_DIGITS}d}+{self.last:0{_DIGITS}d}.{self.extension}"
        )

    @classmethod
    def parse(cls, key: str) -> ObjectName | None:
        """The name behind a key, or None where the key is not a raw object's."""
        found = _OBJECT.fullmatch(key)
        if found is None:
            return None
        return cls(
            found["pipeline"],
            found["topic"],
            int(found["partition"]),
            int(found["first"]),
            int(found["last"]),
            found["ext"],
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


def schema_prefix(pipeline: str, table: str) -> str:
    """The captured schema versions of one source table (`schema.table`)."""
    return f"{pipeline_prefix(pipeline)}_schemas/{checked(table, 'table')}/"


def dead_letter_prefix(pipeline: str) -> str:
    """Records that could not be read, of one pipeline."""
    return f"dlq/{checked(pipeline, 'pipeline')}/"


def lake_prefix(pipeline: str, table: str | None = None) -> str:
    """One Hudi table, or all of a pipeline's."""
    base = f"lake/{checked(pipeline, 'pipeline')}/"
    return base if table is None else f"{base}{checked(table, 'table')}/"


def lease_key(pipeline: str, table: str) -> str:
    """The lease that fences the writers of one table; beside the tables, so that a reset keeps it last."""
    return f"leases/{checked(pipeline, 'pipeline')}/{checked(table, 'table')}.json"
