"""A cache folder and environment of its own for each test of the stack's parts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder; no setting of the caller's reaches the test."""
    for name in list(os.environ):
        if name.startswith("CDC_LAKE_"):
            monkeypatch.delenv(name)
    cache = tmp_path / "cache"
    monkeypatch.setenv("CDC_LAKE_CACHE", str(cache))
    return cache
