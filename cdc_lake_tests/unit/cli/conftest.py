"""Fixtures of the command tests: the fake shop and an own state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake import profile
from cdc_lake.pipeline import loading
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.fake_pipeline_fixture import shop

__all__ = ["commands", "shop"]


@pytest.fixture
def commands(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The shop, with the loading functions of the commands patched to return it."""
    real = loading.load

    def load_from_shop(name: str) -> Pipeline:
        return real(name, shop.pipeline.folder.parent)

    monkeypatch.setattr(loading, "load", load_from_shop)
    monkeypatch.setattr(profile, "resolved", lambda: shop.resolved)
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path / "home"))
    return shop
