"""With CDC_LAKE_NO_SKIPS=1, as in CI, a skipped test fails unless it is marked full_only."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake_tests.pytest_hooks import long_test_sizes, skips

TESTS = """
import pytest
from cdc_lake_tests.pytest_hooks.long_test_sizes import full_only

def test_without_a_browser():
    pytest.skip("no chromium")

@full_only
def test_long(): ...
"""


@pytest.mark.parametrize(("value", "failed", "skipped"), [("1", 1, 1), ("", 0, 2)])
def test_only_tests_for_full_runs_may_be_skipped_in_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, value: str, failed: int, skipped: int
) -> None:
    monkeypatch.setenv(skips.VARIABLE, value)
    monkeypatch.delenv(long_test_sizes.VARIABLE, raising=False)
    monkeypatch.syspath_prepend(Path(skips.__file__).parents[2])
    pytester.makeconftest("from cdc_lake_tests.pytest_hooks.skips import pytest_runtest_makereport")
    pytester.makepyfile(TESTS)
    outcome = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    outcome.assert_outcomes(failed=failed, skipped=skipped)
    assert bool(failed) == any("no chromium. With CDC_LAKE_NO_SKIPS=1" in line for line in outcome.outlines)
