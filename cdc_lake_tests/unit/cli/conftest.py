"""The commands are run on a made-up shop, in a state folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake import profile
from cdc_lake.pipeline import loading
from cdc_lake.pipeline.naming import Flow
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fake_pipeline_fixture import shop

__all__ = ["commands", "shop"]


@pytest.fixture
def commands(shop: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The shop, as the commands find it."""
    real = loading.load

    def named(name: str) -> Flow:
        return real(name, shop.flow.folder.parent)

    monkeypatch.setattr(loading, "load", named)
    monkeypatch.setattr(profile, "resolved", lambda: shop.resolved)
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path / "home"))
    return shop
