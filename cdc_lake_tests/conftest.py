"""What all tests share: a browser, Hypothesis's settings, their order, and the closing count of what was tried."""

import hypothesis

from cdc_lake_tests.browser import browser, chromium
from cdc_lake_tests.order import pytest_collection_modifyitems, pytest_xdist_make_scheduler
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
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "pytest_xdist_make_scheduler",
    "tried",
]

# On a busy machine a first example can take longer than any limit that would say something.
hypothesis.settings.register_profile("cdc-lake", deadline=None)
hypothesis.settings.load_profile("cdc-lake")
