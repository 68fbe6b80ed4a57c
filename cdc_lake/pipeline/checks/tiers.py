"""The tiers of asset checks (docs/decisions/0032): which run with each materialisation, and which on a schedule.

A check without one of these labels is light: its cost is proportional to the new data, and it runs with each
materialisation. Labels are metadata of the check, so that the UI shows them:
`@dg.asset_check(..., metadata=tiers.SCHEDULED)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

_TIER = "tier"
FAILURE_MEANS = "failure means"
"""The metadata label of what a failure means; a check without it is about the correctness of data."""
_LIGHT = "light"

SCHEDULED: Mapping[str, str] = {_TIER: "scheduled"}
"""Marks a check that reads a whole table: it runs every `checks.verify_every`, and on request."""
DAILY: Mapping[str, str] = {_TIER: "daily"}
"""Marks a check that reads the whole history: it runs once a day, and on request."""
LATENESS: Mapping[str, str] = {FAILURE_MEANS: "lateness"}
"""Marks a check, or one result of a check, whose failure does not mean that data are wrong, but that they are late or
could not be compared. Datasets are built nevertheless."""


def light(checks: Iterable[dg.AssetChecksDefinition]) -> list[dg.AssetCheckKey]:
    """Return the checks that run with each materialisation."""
    return _keys(checks, _LIGHT)


def scheduled(checks: Iterable[dg.AssetChecksDefinition]) -> list[dg.AssetCheckKey]:
    """Return the checks that run every `checks.verify_every`."""
    return _keys(checks, SCHEDULED[_TIER])


def daily(checks: Iterable[dg.AssetChecksDefinition]) -> list[dg.AssetCheckKey]:
    """Return the checks that run once a day."""
    return _keys(checks, DAILY[_TIER])


def correctness(checks: Iterable[dg.AssetChecksDefinition]) -> list[dg.AssetCheckKey]:
    """Return the checks, of any tier, whose failure means that data are wrong."""
    return [spec.key for spec in _specs(checks) if spec.metadata.get(FAILURE_MEANS) != LATENESS[FAILURE_MEANS]]


def is_lateness(metadata: Mapping[str, Any]) -> bool:
    """Return whether a result with this metadata is marked LATENESS."""
    mark = metadata.get(FAILURE_MEANS)
    return getattr(mark, "value", mark) == LATENESS[FAILURE_MEANS]


def _keys(checks: Iterable[dg.AssetChecksDefinition], tier: str) -> list[dg.AssetCheckKey]:
    return [spec.key for spec in _specs(checks) if spec.metadata.get(_TIER, _LIGHT) == tier]


def _specs(checks: Iterable[dg.AssetChecksDefinition]) -> list[dg.AssetCheckSpec]:
    return [spec for check in checks for spec in check.check_specs]
