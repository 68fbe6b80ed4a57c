"""The location of the cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.folders import cache_folder


@pytest.mark.parametrize("variable", ["CDC_LAKE_CACHE", "XDG_CACHE_HOME"])
def test_a_dangling_link_to_the_cache_folder_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("CDC_LAKE_CACHE")
    link = tmp_path / "caches" / "cdc-lake"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "a-bigger-disk" / "cdc-lake")
    monkeypatch.setenv(variable, str(link if variable == "CDC_LAKE_CACHE" else link.parent))
    cache_folder().mkdir(parents=True, exist_ok=True)
    assert link.is_dir(), "the folder is created at the link's target"
