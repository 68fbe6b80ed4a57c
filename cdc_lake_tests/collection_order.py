"""Order of the tests and their distribution over processes: tests of one stack run in one process, long ones first."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

LONGEST_FIRST = (
    "e2e",
    "integration/chain",
    "integration/verify",
    "integration/jobs",
    "faults/jobs",
    "integration/infra",
    "integration",
    # The process that has the fault tests' stack and their Spark session keeps both until its last fault test.
    "faults/infra",
    "faults/test_kills",
    "faults/test_verify_under_load",
    "faults/test_failpoints",
    "faults/test_writers",
    "faults/test_slot",
    "faults/test_resnapshot_kills",
    "faults/test_demo_kills",
    "faults",
)
ONE_STACK = {
    "e2e/test_aws": "the stack with the aws profile",
    "e2e": "the stack of the demo",
    "integration/chain": "the stack of the real chain",
    "integration/verify": "the stack of the oracle's tests",
    "faults/jobs": "the engines of the jobs' tests",
}
"""Tests that continue each other or share a slow start, by path prefix. Any other file is a group of its own."""


class ByStacks(LoadScopeScheduling):
    """Assign all tests of a stack, or of a file, to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


# Marks (--dist loadgroup) do not work: pytest 9.2 ignores what xdist 3.8 does with them, without a message.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByStacks:  # noqa: ANN401 - xdist's own
    """Return the scheduler for runs on several processes."""
    return ByStacks(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests, long ones first; the order within a group stays."""
    items.sort(key=lambda item: rank(item.nodeid))


def group(nodeid: str) -> str:
    """Return the group of a test: the name of its stack, else its file. `nodeid` is pytest's id."""
    for place, stack in ONE_STACK.items():
        if _is_in(nodeid, place):
            return stack
    return nodeid.split("::", 1)[0]


def rank(nodeid: str) -> int:
    """Return the position of a test in the order. `nodeid` is pytest's id."""
    return next((number for number, place in enumerate(LONGEST_FIRST) if _is_in(nodeid, place)), len(LONGEST_FIRST))


def _is_in(nodeid: str, place: str) -> bool:
    return nodeid.partition("cdc_lake_tests/")[2].startswith(place)
