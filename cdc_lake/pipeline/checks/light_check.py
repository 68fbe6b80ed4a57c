"""The checks that can run without a Dagster run: asset checks whose function the health sensor also calls.

They are some of the checks of the light tier, which tiers.light() returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dagster as dg

Evaluate = Callable[..., dg.AssetCheckResult]


@dataclass(frozen=True)
class LightCheck:
    """A check's function, whose parameters are named after the resources that it uses, and its options."""

    evaluate: Evaluate
    options: Mapping[str, Any]

    @property
    def key(self) -> dg.AssetCheckKey:
        """The key of the check."""
        return dg.AssetCheckKey(self.options["asset"], self.options.get("name", self.evaluate.__name__))

    @cached_property
    def definition(self) -> dg.AssetChecksDefinition:
        """The check's definition. It takes Dagster a millisecond, and the health sensor needs none."""
        return dg.asset_check(**self.options)(self.evaluate)


def light_check(**options: Any) -> Callable[[Evaluate], LightCheck]:  # noqa: ANN401 - those of asset_check
    """Decorate the function of a check that can run without a Dagster run; the options are those of `asset_check`."""
    return lambda evaluate: LightCheck(evaluate, options)
