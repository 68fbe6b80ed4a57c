"""Counts of the trials in random and fault tests (histories, deliveries, faults); the pytest summary prints the sums.

A test uses the fixture `count_trials` and calls `count_trials("histories", 40)`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc_lake_tests.pytest_hooks.suites import SUITES, suite_name

CountTrials = Callable[[str, int], None]
_COUNTS: pytest.StashKey[Counter[str]] = pytest.StashKey()
_OUTPUT = "trials"
"""The key under which a worker of pytest-xdist sends its sums to the main process."""


def pytest_configure(config: pytest.Config) -> None:
    """Reset the counts."""
    config.stash[_COUNTS] = Counter()


@pytest.fixture(scope="session")
def count_trials(pytestconfig: pytest.Config) -> CountTrials:
    """Return a function that adds to the count of a kind."""
    counts = pytestconfig.stash[_COUNTS]

    def add(what: str, count: int = 1) -> None:
        counts[what] += count

    return add


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's sums to the main process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        counts = session.config.stash[_COUNTS]
        output[_OUTPUT] = dict(counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController
    """Add a worker's sums; a killed worker sends no sums."""
    node.config.stash[_COUNTS].update(getattr(node, "workeroutput", {}).get(_OUTPUT, {}))


def print_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the sums in their own section, and store them for main()."""
    counts = config.stash[_COUNTS]
    if not counts:
        return
    terminalreporter.section("trials")
    for line in _lines(counts):
        terminalreporter.write_line(line)
    cache = getattr(config, "cache", None)  # None with -p no:cacheprovider
    if cache is not None:
        cache.set(f"{_OUTPUT}/{suite_name(config)}", dict(counts))


def main() -> None:
    """Print the sums of the last runs of every suite: `python -m cdc_lake_tests.pytest_hooks.trial_counts`."""
    counts: Counter[str] = Counter()
    for suite in SUITES:
        file = Path(".pytest_cache/v", _OUTPUT, suite)
        if file.exists():
            counts.update(json.loads(file.read_text()))
    print("\n".join(["trials in all tests:", *_lines(counts)]))


def _lines(counts: Counter[str]) -> list[str]:
    width = max((len(f"{count:,}") for count in counts.values()), default=0)
    return [f"{count:>{width},} {what}" for what, count in sorted(counts.items())]


if __name__ == "__main__":
    main()
