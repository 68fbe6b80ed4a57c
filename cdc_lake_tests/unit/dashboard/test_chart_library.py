"""The charting library is bundled once for each version of vl-convert and cached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from cdc_lake.dashboard import page


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, as in a new process."""
    monkeypatch.setenv("CDC_LAKE_CACHE", str(tmp_path))
    page.chart_library.cache_clear()
    yield tmp_path
    page.chart_library.cache_clear()


def test_a_new_process_uses_the_cached_bundle_of_its_version(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = page.chart_library()
    assert "vegaEmbed" in first
    assert len(list(cache.glob("charts/*"))) == 1

    def bundle_again(*_: object, **__: object) -> str:
        raise AssertionError("bundled again")

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle_again)
    page.chart_library.cache_clear()
    assert page.chart_library() == first

    monkeypatch.setattr(page, "version", lambda _: "0.0.1")
    page.chart_library.cache_clear()
    with pytest.raises(AssertionError, match="bundled again"):
        page.chart_library()


def test_a_page_is_rendered_without_a_writable_cache(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    (cache / "charts").touch()  # a file in place of the folder: even root cannot write there
    assert "vegaEmbed" in page.chart_library()
    assert "Cannot cache the charting library" in caplog.text
