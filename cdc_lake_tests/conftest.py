"""Fixtures and hooks of all tests: the browser, Hypothesis's settings, the test order, the summary."""

from collections.abc import Iterator

import hypothesis
import pytest

from cdc_lake.contract.objects import store
from cdc_lake_tests.helpers.browser import browser, chromium
from cdc_lake_tests.pytest_hooks import durations
from cdc_lake_tests.pytest_hooks.collection_order import pytest_collection_modifyitems, pytest_xdist_make_scheduler
from cdc_lake_tests.pytest_hooks.drawn_tests import pytest_itemcollected
from cdc_lake_tests.pytest_hooks.durations import pytest_sessionstart
from cdc_lake_tests.pytest_hooks.skips import pytest_runtest_makereport
from cdc_lake_tests.pytest_hooks.trial_counts import (
    count_trials,
    print_summary,
    pytest_configure,
    pytest_sessionfinish,
    pytest_testnodedown,
)

pytest_plugins = ["pytester"]

__all__ = [
    "browser",
    "chromium",
    "count_trials",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_itemcollected",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "pytest_sessionstart",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "pytest_xdist_make_scheduler",
]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print and store the trial counts and the durations."""
    print_summary(terminalreporter, config)
    durations.print_and_store(terminalreporter, config)


@pytest.fixture(autouse=True)
def new_clients() -> Iterator[None]:
    """Create new clients of the store in each test, since tests change the environment and exhaust retries."""
    yield
    store.client_of.cache_clear()


# On a busy machine a first example exceeds any useful deadline.
hypothesis.settings.register_profile("cdc-lake", deadline=None, print_blob=True)
hypothesis.settings.load_profile("cdc-lake")
