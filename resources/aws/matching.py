"""Comparison of a requested AWS object with the response of a Describe call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def same(wanted: Any, runs: Any) -> bool:  # noqa: ANN401 - parts of requests
    """Return whether the actual object has all requested members; descriptions also have members of AWS's own.

    The order of strings in a list does not matter.
    """
    if isinstance(wanted, Mapping):
        return isinstance(runs, Mapping) and all(same(value, runs.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(runs, list) or len(wanted) != len(runs):
            return False
        plain = all(isinstance(each, str) for each in wanted)
        pairs = zip(sorted(wanted), sorted(runs), strict=True) if plain else zip(wanted, runs, strict=True)
        return all(same(one, other) for one, other in pairs)
    return bool(wanted == runs)
