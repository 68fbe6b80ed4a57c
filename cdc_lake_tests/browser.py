"""A real browser for tests of pages: the machine's own Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # every test run loads this module; only those that open a page load Playwright
    from playwright.sync_api import Browser

_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path; tests that need one are skipped where there is none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A running browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=[*_OPTIONS])
        yield running
        running.close()
