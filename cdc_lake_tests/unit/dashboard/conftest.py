"""Declarations to change and to load."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdc_lake.dashboard import DashboardSpec, load_dashboard

from .shop import DECLARED


@pytest.fixture
def declared() -> dict[str, Any]:
    """A valid declaration, to be changed at will."""
    return copy.deepcopy(DECLARED)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[dict[str, Any]], DashboardSpec]:
    """Writes a declaration to a file and loads it."""

    def written(given: dict[str, Any]) -> DashboardSpec:
        path = tmp_path / "dashboard.yaml"
        path.write_text(yaml.safe_dump(given), encoding="utf-8")
        return load_dashboard(path)

    return written


@pytest.fixture
def spec(declared: dict[str, Any], load: Callable[[dict[str, Any]], DashboardSpec]) -> DashboardSpec:
    return load(declared)
