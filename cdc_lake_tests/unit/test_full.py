"""CDC_LAKE_FULL: what it may be, and that docs/reliability.md marks the lines that need it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdc_lake_tests import long_test_sizes

TESTS = Path(long_test_sizes.__file__).parent
RELIABILITY = (TESTS.parent / "docs" / "reliability.md").read_text()
MARK = "(FULL)"


@pytest.mark.parametrize(("value", "number"), [(None, 22), ("", 22), ("0", 22), ("1", 51)])
def test_sizes(monkeypatch: pytest.MonkeyPatch, value: str | None, number: int) -> None:
    monkeypatch.delenv(long_test_sizes.VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(long_test_sizes.VARIABLE, value)
    assert long_test_sizes.size(in_ci=22, full=51) == number


def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(long_test_sizes.VARIABLE, "yes")
    with pytest.raises(ValueError, match=r"CDC_LAKE_FULL: 'yes' is neither 1 nor 0"):
        long_test_sizes.is_full()


def test_reliability_marks_what_runs_in_full_only() -> None:
    """A line whose only tests are skipped in CI would look like a promise that each commit is held to."""
    only = {str(file.relative_to(TESTS)) for file in TESTS.rglob("test_*.py") if is_skipped(file.read_text())}
    assert only == {"faults/test_demo_kills.py"}
    for line in RELIABILITY.splitlines():
        named = set(re.findall(r"`((?:unit|integration|faults|e2e)/[\w/]+\.py)", line))
        assert not (named and named <= only) or MARK in line, line


def is_skipped(source: str) -> bool:
    """Whether each test of a file is skipped in CI."""
    return source.count("\n@full_only\n") == len(re.findall(r"^ *def test_", source, re.MULTILINE)) > 0
