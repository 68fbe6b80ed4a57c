"""Order of the tests and their distribution over processes: tests of one stack run in one process, long ones first."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from cdc_lake_tests.pytest_hooks import drawn_tests

LONGEST_FIRST = (
    "e2e",
    "e2e/test_how_to",  # changes the demo's tables and topics
    "e2e/test_moma",
    "e2e/test_pagila",
    "integration/chain",
    "integration/verify",
    "integration/jobs",
    "faults/jobs",
    "integration/infra",
    "integration",
    # The process that has the fault tests' stack and their Spark session keeps both until its last fault test.
    "faults/infra",
    "faults/writers/test_failpoints",
    "faults/kills/test_kills",
    "faults/kills/test_merge_on_read_kills",
    "faults/writers/test_polled_kills",
    "faults/stream/test_without_exactly_once",
    "faults/kills/test_demo_kills",
    "faults/writers/test_writers",
    "faults/writers/test_resnapshot_kills",
    "faults/verify/test_verify_under_load",
    "faults/stream/test_slot",
    "faults",
)
ONE_STACK = {
    "e2e/test_aws": "the stack with the aws profile",
    "e2e/test_environments": "the stack of another user",
    "e2e/test_moma": "the stack of MoMA",
    "e2e/test_pagila_query": "the stack of polled Pagila",
    "e2e/test_pagila": "the stack of Pagila",
    "e2e": "the stack of the demo",
    "integration/chain": "the stack of the real chain",
    "integration/verify": "the stack of the oracle's tests",
    "faults/jobs": "the engines of the jobs' tests",
}
"""Tests that continue from each other's state or share a slow start, by path prefix. Any other file is a group."""


class ByStacks(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Assign all tests of a stack, or of a file, to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


# Marks (--dist loadgroup) do not work: pytest 9.2 ignores what xdist 3.8 does with them, without a message.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByStacks:  # noqa: ANN401 - xdist's own
    """Return the scheduler for runs on several processes."""
    return ByStacks(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that this run has not drawn, and sort the others, long ones first; in a group the order stays."""
    drawn_tests.deselect(config, items)
    items.sort(key=lambda item: rank(item.nodeid))


def group(nodeid: str) -> str:
    """Return the group of a test: the name of its stack, else its file. `nodeid` is pytest's id."""
    for place, stack in ONE_STACK.items():
        if _is_in(nodeid, place):
            return stack
    return nodeid.split("::", 1)[0]


def rank(nodeid: str) -> int:
    """Return the position of a test in the order, by the longest path that matches. `nodeid` is pytest's id."""
    places = [place for place in LONGEST_FIRST if _is_in(nodeid, place)]
    return LONGEST_FIRST.index(max(places, key=len)) if places else len(LONGEST_FIRST)


def _is_in(nodeid: str, place: str) -> bool:
    return nodeid.partition("cdc_lake_tests/")[2].startswith(place)
