"""Fixtures: a valid dashboard declaration, and a function that loads a changed one."""

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
    """Return a valid declaration that the test may change."""
    return copy.deepcopy(DECLARED)


@pytest.fixture
def load(tmp_path: Path) -> Callable[[dict[str, Any]], DashboardSpec]:
    """Return a function that writes a declaration to a file and loads it."""

    def from_file(changed: dict[str, Any]) -> DashboardSpec:
        path = tmp_path / "dashboard.yaml"
        path.write_text(yaml.safe_dump(changed), encoding="utf-8")
        return load_dashboard(path)

    return from_file


@pytest.fixture
def spec(declared: dict[str, Any], load: Callable[[dict[str, Any]], DashboardSpec]) -> DashboardSpec:
    return load(declared)
