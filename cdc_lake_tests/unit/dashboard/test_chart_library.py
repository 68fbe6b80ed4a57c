"""The charts' library is bundled once for each version of what bundles it, and is the same from the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_lake.dashboard import page


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, and a process that has asked for nothing yet."""
    monkeypatch.setenv("CDC_LAKE_CACHE", str(tmp_path))
    page.chart_library.cache_clear()
    yield tmp_path
    page.chart_library.cache_clear()


def test_another_process_takes_what_was_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = page.chart_library()
    assert "vegaEmbed" in first
    assert len(list(cache.glob("charts/*"))) == 1

    def again(*_: object, **__: object) -> str:
        raise AssertionError("bundled anew")

    monkeypatch.setattr(page.vl_convert, "javascript_bundle", again)
    page.chart_library.cache_clear()
    assert page.chart_library() == first

    monkeypatch.setattr(page, "version", lambda _: "0.0.1")
    page.chart_library.cache_clear()
    with pytest.raises(AssertionError, match="bundled anew"):
        page.chart_library()


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    (cache / "charts").touch()  # a file where the folder is to be: nobody, not even root, writes there
    assert "vegaEmbed" in page.chart_library()
    assert "not kept" in caplog.text
