"""What all tests share: a browser, and the closing count of what was tried."""

from cdc_lake_tests.browser import browser, chromium
from cdc_lake_tests.tried import (
    pytest_configure,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
    tried,
)

__all__ = [
    "browser",
    "chromium",
    "pytest_configure",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "tried",
]
