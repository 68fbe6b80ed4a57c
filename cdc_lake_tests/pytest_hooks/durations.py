"""Duration of each test file: the sum of pytest's setup, call and teardown times.

Each run stores its sums in pytest's cache; `python -m cdc_lake_tests.pytest_hooks.durations` prints those of CI's
suites. Tests download nothing, so the sums are those of a warm machine.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import pytest

from cdc_lake_tests.pytest_hooks.suites import SUITES, suite_name

SLOWEST = 10
_SHORT_SECONDS = 60
_STORE = "durations"
_STARTED: pytest.StashKey[float] = pytest.StashKey()


class Run(TypedDict):
    """Seconds of one pytest run, in total and by file over all processes."""

    seconds: float
    files: Mapping[str, float]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Store the start time."""
    session.config.stash[_STARTED] = time.monotonic()


def print_and_store(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the slowest files of a run of more than a minute; store the seconds, in total and by file."""
    run = Run(seconds=time.monotonic() - config.stash[_STARTED], files=by_file(reporter.stats))
    if run["seconds"] > _SHORT_SECONDS:
        reporter.section("durations")
        for line in lines({suite_name(config): run}):
            reporter.write_line(line)
    cache = getattr(config, "cache", None)  # None with -p no:cacheprovider
    if cache is not None:
        cache.set(f"{_STORE}/{suite_name(config)}", run)


def by_file(stats: Mapping[str, list[object]]) -> Mapping[str, float]:
    """Return the seconds of each file from pytest's reports."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.split("::", 1)[0]] += report.duration
    return seconds


def lines(runs: Mapping[str, Run]) -> list[str]:
    """Return the minutes of each suite and the slowest files of all suites."""
    files: Counter[str] = Counter()
    for run in runs.values():
        files.update(run["files"])
    suites = ", ".join(f"{suite} {run['seconds'] / 60:.1f} min" for suite, run in runs.items())
    slowest = [f"{seconds / 60:5.1f} min  {file}" for file, seconds in files.most_common(SLOWEST)]
    return [f"test durations, without downloads: {suites}", *slowest]


def main() -> None:
    """Print the durations of the last runs of CI's suites."""
    runs = {}
    for suite in SUITES:
        file = Path(".pytest_cache/v", _STORE, suite)
        if file.exists():
            runs[suite] = json.loads(file.read_text())
    print("\n".join(lines(runs)))


if __name__ == "__main__":
    main()
