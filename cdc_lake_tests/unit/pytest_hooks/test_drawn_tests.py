"""CI draws tests of long modules and long files by the seed; named files and full runs have all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake_tests.pytest_hooks import drawn_tests, long_test_sizes

TESTS = Path(drawn_tests.__file__).parents[1]
MODULE = "TESTS_IN_CI = 2\n" + "".join(f"def test_{n}(): pass\n" for n in range(5))
CONFTEST = """
from cdc_lake_tests.pytest_hooks import drawn_tests

drawn_tests.LONG_FILES = {files!r}

def pytest_collection_modifyitems(config, items):
    drawn_tests.deselect(config, items)
"""


@pytest.fixture(autouse=True)
def _in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(long_test_sizes.VARIABLE, raising=False)
    monkeypatch.setattr(drawn_tests, "LONG_FILES", {})


def passed(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Run pytest on the folder; return the tests that passed."""
    result = pytester.inline_run(*arguments)
    return [report.nodeid for report in result.getreports("pytest_runtest_logreport") if report.when == "call"]


def test_a_seed_draws_tests_of_a_module(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeconftest(CONFTEST.format(files={}))
    pytester.makepyfile(test_long=MODULE, test_short="def test_short(): pass\n")
    runs = []
    for seed in range(12):
        monkeypatch.setenv(long_test_sizes.SEED_VARIABLE, str(seed))
        runs.append(passed(pytester))
        assert runs[-1] == passed(pytester), "a seed draws the same tests again"
    assert all(len(run) == 3 for run in runs)
    assert len({name for run in runs for name in run}) == 6


def test_a_seed_draws_long_files_that_fit_in_the_minutes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes = drawn_tests.MINUTES_IN_CI
    files = {"test_a.py": minutes, "test_b.py": minutes / 2, "test_c.py": minutes / 2, "test_absent.py": minutes / 4}
    pytester.makeconftest(CONFTEST.format(files=files))
    pytester.makepyfile(test_a="def test_1(): pass\ndef test_2(): pass\n", test_b="def test_3(): pass\n")
    pytester.makepyfile(test_c="def test_4(): pass\n", test_short="def test_5(): pass\n")
    runs = set()
    for seed in range(12):
        monkeypatch.setenv(long_test_sizes.SEED_VARIABLE, str(seed))
        runs.add(tuple(passed(pytester)))
    a, b, c = ("test_a.py::test_1", "test_a.py::test_2"), ("test_b.py::test_3",), ("test_c.py::test_4",)
    assert runs == {(*files, "test_short.py::test_5") for files in (a, (*b, *c), b, c)}


def test_every_long_file_exists_and_is_drawn_by_some_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real files
    assert all((TESTS / file).is_file() for file in drawn_tests.LONG_FILES)
    drawn = set()
    for seed in range(100):
        monkeypatch.setenv(long_test_sizes.SEED_VARIABLE, str(seed))
        drawn |= drawn_tests.drawn_files()
    assert drawn == set(drawn_tests.LONG_FILES)


def test_full_runs_and_named_files_have_all_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeconftest(CONFTEST.format(files={}))
    pytester.makepyfile(test_long=MODULE)
    assert len(passed(pytester, "test_long.py")) == 5
    assert len(passed(pytester, "test_long.py::test_3")) == 1
    monkeypatch.setenv(long_test_sizes.VARIABLE, "1")
    assert len(passed(pytester)) == 5


def test_tests_that_are_the_same_in_every_run_of_ci_are_marked(pytester: pytest.Pytester) -> None:
    hooks = "from cdc_lake_tests.pytest_hooks.drawn_tests import pytest_itemcollected\n"
    pytester.makeconftest(hooks + CONFTEST.format(files={"e2e/test_drawn.py": 1}))
    pytester.makeini(f"[pytest]\nmarkers = {drawn_tests.SAME_IN_CI}")
    folder = pytester.mkdir("cdc_lake_tests")
    test = "def test_it(): pass\n"
    sized = f"from {long_test_sizes.__name__} import size\n"
    for file, text in {
        "e2e/test_same.py": test,
        "e2e/test_drawn.py": test,
        "integration/jobs/test_sized.py": sized + test,
        "integration/jobs/test_number.py": "TESTS_IN_CI = 1\n" + test,
        "faults/test_fault.py": test,
    }.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    found = passed(pytester, "-m", drawn_tests.SAME_IN_CI, "--import-mode=importlib", "cdc_lake_tests")
    assert found == ["cdc_lake_tests/e2e/test_same.py::test_it"]
