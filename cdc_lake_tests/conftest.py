"""Fixtures and hooks of all tests: the browser, Hypothesis's settings, the test order, the summary."""

import hypothesis
import pytest

from cdc_lake_tests import durations
from cdc_lake_tests.browser import browser, chromium
from cdc_lake_tests.collection_order import pytest_collection_modifyitems, pytest_xdist_make_scheduler
from cdc_lake_tests.durations import pytest_sessionstart
from cdc_lake_tests.trial_counts import (
    print_summary,
    pytest_configure,
    pytest_sessionfinish,
    pytest_testnodedown,
    tried,
)

__all__ = [
    "browser",
    "chromium",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_sessionfinish",
    "pytest_sessionstart",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "pytest_xdist_make_scheduler",
    "tried",
]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the trial counts; store them and the durations."""
    print_summary(terminalreporter, config)
    durations.store(terminalreporter, config)


# On a busy machine a first example exceeds any useful deadline.
hypothesis.settings.register_profile("cdc-lake", deadline=None, print_blob=True)
hypothesis.settings.load_profile("cdc-lake")
