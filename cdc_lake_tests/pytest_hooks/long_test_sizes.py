"""Size of the long tests: CI's share, or all with CDC_LAKE_FULL=1, which `make test-faults FULL=1` sets.

A test takes its number from `size` and its cases from `drawn`, or has the mark `full_only`. No other module reads the
variable.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

import pytest

VARIABLE = "CDC_LAKE_FULL"
SEED_VARIABLE = "CDC_LAKE_SEED"
DEFAULT_SEED = 20260101

Case = TypeVar("Case")


def is_full() -> bool:
    """Return whether all cases run. Raises ValueError for a value other than 1, 0 or nothing."""
    value = os.environ.get(VARIABLE, "")
    if value not in {"", "0", "1"}:
        raise ValueError(f"Cannot read {VARIABLE}: {value!r} is neither 1 nor 0. Set it to 1, or unset it.")
    return value == "1"


def seed() -> int:
    """Return the seed of this run: CDC_LAKE_SEED, which `.ci/run` sets and prints, or a fixed number."""
    return int(os.environ.get(SEED_VARIABLE) or DEFAULT_SEED)


def size(in_ci: int, full: int) -> int:
    """Return the number for this run."""
    return full if is_full() else in_ci


def drawn(cases: Iterable[Case], in_ci: int) -> list[Case]:
    """Return the cases of this run in their order: all, or in CI as many as `in_ci`, which the seed draws."""
    found = list(cases)
    if is_full() or in_ci >= len(found):
        return found
    kept = sorted(random.Random(seed()).sample(range(len(found)), in_ci))
    return [found[place] for place in kept]


full_only = pytest.mark.skipif(not is_full(), reason=f"only with {VARIABLE}=1 (make test-faults FULL=1)")
