"""Checks that cost little: runs evaluate them as asset checks, and the watch sensor without a run, by one function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

Find = Callable[..., dg.AssetCheckResult]


@dataclass(frozen=True)
class LightCheck:
    """A check's definition, and its function, which takes the resources that it names as its parameters."""

    definition: dg.AssetChecksDefinition
    find: Find

    @property
    def key(self) -> dg.AssetCheckKey:
        """Asset and name."""
        return self.definition.check_key


def light_check(**options: Any) -> Callable[[Find], LightCheck]:  # noqa: ANN401 - those of asset_check
    """Make a function a light check; takes what `dagster.asset_check` takes."""

    def made(find: Find) -> LightCheck:
        return LightCheck(dg.asset_check(**options)(find), find)

    return made
