"""Comparison of a requested AWS object with the response of a Describe call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def matches(desired: Any, actual: Any) -> bool:  # noqa: ANN401 - parts of requests
    """Return whether `actual` has all members of `desired`, with the same values.

    Other members of `actual` are ignored, since AWS adds some. The order of strings in a list does not matter.
    """
    if isinstance(desired, Mapping):
        return isinstance(actual, Mapping) and all(matches(value, actual.get(name)) for name, value in desired.items())
    if isinstance(desired, list):
        if not isinstance(actual, list) or len(desired) != len(actual):
            return False
        only_strings = all(isinstance(each, str) for each in desired)
        pairs = zip(sorted(desired), sorted(actual), strict=True) if only_strings else zip(desired, actual, strict=True)
        return all(matches(one, other) for one, other in pairs)
    return bool(desired == actual)
