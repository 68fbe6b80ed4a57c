"""In CI a skipped test is a failure, because tests that lack a browser or a permission would be skipped unnoticed.

Skips of long_test_sizes.full_only are allowed: those tests run with `make test-faults FULL=1`.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from cdc_lake_tests.pytest_hooks import long_test_sizes

VARIABLE = "CDC_LAKE_NO_SKIPS"
"""Set to 1 by .ci/run."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure whose message contains the reason of the skip."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(VARIABLE) == "1":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if long_test_sizes.VARIABLE not in reason:
            report.outcome = "failed"
            report.longrepr = f"{reason}. With {VARIABLE}=1 no test may be skipped: provide what the test needs."
    return report
