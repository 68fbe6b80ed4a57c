"""A browser for tests of HTML pages: the installed Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # only the tests that open a page import Playwright
    from playwright.sync_api import Browser

_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of Chromium; skip the test if it is not installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Yield a running headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=[*_OPTIONS])
        yield running
        running.close()
