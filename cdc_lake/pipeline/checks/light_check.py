"""The checks that can run without a Dagster run: asset checks whose function the health sensor also calls.

They are some of the checks of the light tier, which tiers.light() returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

Evaluate = Callable[..., dg.AssetCheckResult]


@dataclass(frozen=True)
class LightCheck:
    """A check's definition and its function, whose parameters are named after the resources that it uses."""

    definition: dg.AssetChecksDefinition
    evaluate: Evaluate

    @property
    def key(self) -> dg.AssetCheckKey:
        """The key of the check."""
        return self.definition.check_key


def light_check(**options: Any) -> Callable[[Evaluate], LightCheck]:  # noqa: ANN401 - those of asset_check
    """Decorate the function of a check that can run without a Dagster run; the options are those of `asset_check`."""

    def decorate(evaluate: Evaluate) -> LightCheck:
        return LightCheck(dg.asset_check(**options)(evaluate), evaluate)

    return decorate
