"""What verify found, in numbers and in keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["missing", "extra", "different", "doubled"]
Key = Mapping[str, str | None]
PENDING_SAMPLED = 1000
"""At most so many pending keys of a table are in a report."""


@dataclass(frozen=True)
class Difference:
    """One key whose row is not the same on both sides.

    `columns` are those that differ, with the source's and the lake's value as (shortened) texts, None for NULL.
    `judge` is what the lake's row was held against: the source, or, for a row that changed after the point, the raw
    events that it was folded from.
    """

    kind: Kind
    key: Key
    columns: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    judge: Literal["source", "raw events"] = "source"


@dataclass(frozen=True)
class VerifyReport:
    """Rows and keys by what became of them.

    `source_rows` are those at the point, `lake_rows` those of the commit that are not deleted. `compared` are keys
    that stand on either side and were judged; `resolved` of them changed after the point and were judged by the raw
    events. `pending` keys were set aside and not judged: the lake has not applied their newest change. `doubled` keys
    have more than one row.
    """

    source_rows: int
    lake_rows: int
    compared: int
    resolved: int
    pending: int
    missing: int
    extra: int
    different: int
    doubled: int
    differences: Sequence[Difference]
    """At most as many as asked for."""
    seconds: Mapping[str, float]
    """By phase."""
    pending_keys: Mapping[str, Key] = field(default_factory=dict)
    """A sample of the pending keys by digest: those of the smallest digests, so that two runs sample the same keys."""
    never_judged: Sequence[Key] = ()
    """Keys of the samples that were pending in each of the last pending_counts.RUNS runs."""

    @property
    def clean(self) -> bool:
        """Whether nothing is missing, extra, different or doubled."""
        return not (self.missing or self.extra or self.different or self.doubled)

    @property
    def passed(self) -> bool:
        """Whether it is clean, and no key stayed pending run after run."""
        return self.clean and not self.never_judged
