"""What was tried: tests count histories, deliveries, faults, and pytest's summary prints the sums.

A test takes the fixture `tried` and says `tried("histories", 40)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Tried = Callable[[str, int], None]
_COUNTS: pytest.StashKey[Counter[str]] = pytest.StashKey()
_OUTPUT = "tried"
"""Where a worker of pytest-xdist leaves its sums for the process that prints."""


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


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand a worker's sums over."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = dict(session.config.stash[_COUNTS])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController
    """Take a worker's sums over; one that was killed has none."""
    node.config.stash[_COUNTS].update(getattr(node, "workeroutput", {}).get(_OUTPUT, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the sums, in a section of their own."""
    counts = config.stash[_COUNTS]
    if counts:
        terminalreporter.section("tried")
        width = max(len(f"{count:,}") for count in counts.values())
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>{width},} {what}")
