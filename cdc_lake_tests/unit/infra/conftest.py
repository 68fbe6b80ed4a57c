"""Each test of the stack's parts gets its own cache folder and environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, in an environment without the caller's CDC_LAKE_ variables."""
    for name in list(os.environ):
        if name.startswith("CDC_LAKE_"):
            monkeypatch.delenv(name)
    cache = tmp_path / "cache"
    monkeypatch.setenv("CDC_LAKE_CACHE", str(cache))
    return cache
