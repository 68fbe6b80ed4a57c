"""The result of verify: counts, differences and pending keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["missing", "extra", "different", "doubled"]
Key = Mapping[str, str | None]
PENDING_SAMPLED = 1000
"""The maximum number of pending keys in a report."""


@dataclass(frozen=True)
class Difference:
    """One key whose row differs between the two sides.

    `columns` maps each column that differs to the source's and the lake's value as shortened texts, None for NULL.
    `compared_with` is what the lake's row was compared with: the source, or for a row that changed after the
    point, the raw events that were applied to it.
    """

    kind: Kind
    key: Key
    columns: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    compared_with: Literal["source", "raw events"] = "source"


@dataclass(frozen=True)
class VerifyReport:
    """Counts of rows and keys.

    `source_rows`: the source's rows at the point. `lake_rows`: the commit's rows that are not deleted. `compared`: the
    keys of either side that were compared. `resolved`: those of them that changed after the point, and were compared by
    means of the raw events. `pending`: the keys that were not compared, because the lake has not applied their newest
    change. `doubled`: the keys of which a side has more than one row.
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
    """At most VerifySpec.limit differences."""
    seconds: Mapping[str, float]
    """The duration of each phase."""
    pending_keys: Mapping[str, Key] = field(default_factory=dict)
    """The pending keys with the smallest digests, by digest, so that two runs sample the same keys."""
    never_compared: Sequence[Key] = ()
    """The sampled keys that were pending in each of the last pending_counts.MAX_PENDING_RUNS runs."""
    omitted_columns: Sequence[str] = ()
    """The source's columns that are not captured, and not compared."""

    @property
    def clean(self) -> bool:
        """Return whether no key is missing, extra, different or doubled."""
        return not (self.missing or self.extra or self.different or self.doubled)

    @property
    def passed(self) -> bool:
        """Return whether it is clean, and no key stayed pending in all recent runs."""
        return self.clean and not self.never_compared
