"""The summary of test durations: seconds by file, the slowest first."""

from __future__ import annotations

import pytest

from cdc_lake_tests.pytest_hooks.durations import by_file, lines


def report(nodeid: str, when: str, seconds: float) -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", 0, ""), {}, "passed", None, when, duration=seconds)  # type: ignore[arg-type]


def test_setup_and_call_of_a_files_tests_are_summed() -> None:
    setup, call, other = report("a.py::one", "setup", 1.0), report("a.py::two[x::y]", "call", 2.0), object()
    assert by_file({"": [setup, other], "passed": [call, report("b.py::one", "call", 5.0)]}) == {
        "a.py": 3.0,
        "b.py": 5.0,
    }


def test_the_ten_slowest_files_are_listed() -> None:
    files = {f"file{number}.py": 60.0 * number for number in range(1, 13)}
    suite, *slowest = lines(
        {"unit": {"seconds": 90.0, "files": {"file1.py": 60.0}}, "e2e": {"seconds": 60.0, "files": files}}
    )
    assert suite == "test durations, without downloads: unit 1.5 min, e2e 1.0 min"
    assert len(slowest) == 10
    assert slowest[0] == " 12.0 min  file12.py"
