"""Size of the long tests: CI's share, or all with CDC_LAKE_FULL=1, which `make test-faults FULL=1` sets.

A test takes its number from `size`, or has the mark `full_only`. No other module reads the variable.
"""

from __future__ import annotations

import os

import pytest

VARIABLE = "CDC_LAKE_FULL"


def is_full() -> bool:
    """Return whether all cases run. Raises ValueError for a value other than 1, 0 or nothing."""
    value = os.environ.get(VARIABLE, "")
    if value not in {"", "0", "1"}:
        raise ValueError(f"Cannot read {VARIABLE}: {value!r} is neither 1 nor 0. Set it to 1, or unset it.")
    return value == "1"


def size(in_ci: int, full: int) -> int:
    """Return the number for this run."""
    return full if is_full() else in_ci


full_only = pytest.mark.skipif(not is_full(), reason=f"only with {VARIABLE}=1 (make test-faults FULL=1)")
