"""What was tried: tests count histories, deliveries, faults, and pytest's summary prints the sums.

A test takes the fixture `tried` and says `tried("histories", 40)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

Tried = Callable[[str, int], None]
_COUNTS: pytest.StashKey[Counter[str]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with nothing tried."""
    config.stash[_COUNTS] = Counter()


@pytest.fixture(scope="session")
def tried(pytestconfig: pytest.Config) -> Tried:
    """Add to the number of things of a kind that were tried."""
    counts = pytestconfig.stash[_COUNTS]

    def add(what: str, count: int = 1) -> None:
        counts[what] += count

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the sums, in a section of their own."""
    counts = config.stash[_COUNTS]
    if counts:
        terminalreporter.section("tried")
        width = max(len(f"{count:,}") for count in counts.values())
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>{width},} {what}")
