"""Which process runs which tests, and in which order: a stack is made once, long ones come first, all end together."""

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
    # A process that has the stack of the faults keeps it, and the judge's Spark, until its last test of them.
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
"""What goes on from one another, or shares what takes long to start; a file anywhere else stands for itself."""


class ByStacks(LoadScopeScheduling):
    """Give out the tests of a stack, or of a file, to one process each."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


# Not by marks (--dist loadgroup): what xdist 3.8 does with those, pytest 9.2 passes over without a word.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByStacks:  # noqa: ANN401 - xdist's own
    """Group by stacks whatever runs on several processes."""
    return ByStacks(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long ones first, each group's tests staying in their order."""
    items.sort(key=lambda item: rank(item.nodeid))


def group(nodeid: str) -> str:
    """Whose stack a test runs on, by the id that pytest gives it."""
    for place, stack in ONE_STACK.items():
        if _is_in(nodeid, place):
            return stack
    return nodeid.split("::", 1)[0]


def rank(nodeid: str) -> int:
    """Return a test's place in the order, by the id that pytest gives it."""
    return next((number for number, place in enumerate(LONGEST_FIRST) if _is_in(nodeid, place)), len(LONGEST_FIRST))


def _is_in(nodeid: str, place: str) -> bool:
    return nodeid.partition("cdc_lake_tests/")[2].startswith(place)
