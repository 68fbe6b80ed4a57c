"""CDC_LAKE_FULL: its values, and the marks of docs/reliability.md for tests that need it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdc_lake_tests.pytest_hooks import long_test_sizes

TESTS = Path(long_test_sizes.__file__).parents[1]
RELIABILITY = (TESTS.parent / "docs" / "reliability.md").read_text()
MARK = "(FULL)"


@pytest.mark.parametrize(("value", "number"), [(None, 22), ("", 22), ("0", 22), ("1", 51)])
def test_size_depends_on_the_variable(monkeypatch: pytest.MonkeyPatch, value: str | None, number: int) -> None:
    monkeypatch.delenv(long_test_sizes.VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(long_test_sizes.VARIABLE, value)
    assert long_test_sizes.size(in_ci=22, full=51) == number


def test_another_value_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(long_test_sizes.VARIABLE, "yes")
    with pytest.raises(ValueError, match=r"CDC_LAKE_FULL: 'yes' is neither 1 nor 0"):
        long_test_sizes.is_full()


def test_reliability_marks_lines_that_are_tested_only_in_full_runs() -> None:
    """Without the mark, a line whose tests are skipped in CI would look as if it was tested with each commit."""
    only = {str(file.relative_to(TESTS)) for file in TESTS.rglob("test_*.py") if is_skipped(file.read_text())}
    assert only == {
        "e2e/test_how_to.py",
        *("faults/kills/test_demo_kills.py", "faults/kills/test_merge_on_read_kills.py"),
    }
    for line in RELIABILITY.splitlines():
        named_tests = set(re.findall(r"`((?:unit|integration|faults|e2e)/[\w/]+\.py)", line))
        assert not (named_tests and named_tests <= only) or MARK in line, line


def is_skipped(source: str) -> bool:
    """Return whether all tests of a file are skipped in CI."""
    return source.count("\n@full_only\n") == len(re.findall(r"^ *def test_", source, re.MULTILINE)) > 0


def test_ci_draws_some_cases_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(long_test_sizes.VARIABLE, raising=False)
    cases, runs = range(10), []
    for seed in range(40):
        monkeypatch.setenv(long_test_sizes.SEED_VARIABLE, str(seed))
        runs.append(long_test_sizes.drawn(cases, in_ci=3))
    assert all(len(run) == 3 and run == sorted(run) for run in runs)
    assert {case for run in runs for case in run} == set(cases)
    monkeypatch.setenv(long_test_sizes.VARIABLE, "1")
    assert long_test_sizes.drawn(cases, in_ci=3) == list(cases)
