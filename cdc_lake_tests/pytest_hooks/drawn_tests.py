"""Without CDC_LAKE_FULL=1, as in CI, only some of the long tests run; the seed draws them.

A module sets how many of its tests run as `TESTS_IN_CI`. Of LONG_FILES, files that together take at most
MINUTES_IN_CI run. Tests and files that the command line names always run.

Tests of integration/ and e2e/ that are the same in every run of CI have the marker SAME_IN_CI: a run of all sizes need
not repeat them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping

import pytest

from cdc_lake_tests.pytest_hooks.long_test_sizes import drawn, full_only, is_full, seed, size

NUMBER = "TESTS_IN_CI"
SAME_IN_CI = "same_in_ci"
LONG_FILES: Mapping[str, float] = {
    "e2e/test_aws_profile.py": 6,
    "e2e/test_docs.py": 2.5,
    "e2e/test_materialize.py": 2,
    "e2e/test_moma.py": 11,
    "e2e/test_pagila.py": 11,
    "e2e/test_pagila_query.py": 11,
    "faults/stream/test_another_server.py": 3.5,
    "faults/verify/test_verify_under_load.py": 8,
    "faults/writers/test_polled_kills.py": 5,
    "faults/writers/test_resnapshot_kills.py": 6,
    "faults/writers/test_writers.py": 4,
    "integration/chain/formats/test_avro.py": 5,
    "integration/chain/formats/test_json_target.py": 4,
    "integration/chain/test_added_table.py": 5,
    "integration/chain/test_two_targets.py": 5,
    "integration/infra/test_security.py": 5,
    "integration/jobs/maintenance/test_cluster.py": 3.5,
}
"""Minutes of each file and its share of a stack's start, on a machine where all unit tests take four minutes."""
MINUTES_IN_CI = 18


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test if the sizes of its module are fixed, and every run of CI has all of them."""
    if _file(item).startswith(("e2e/", "integration/")) and _file(item) not in LONG_FILES:
        names, sizes = vars(_module(item)), (drawn, full_only, size)
        if NUMBER not in names and not any(value is each for value in names.values() for each in sizes):
            item.add_marker(SAME_IN_CI)


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests that this run has not drawn from `items`, and report them to pytest as deselected."""
    if is_full():
        return
    candidates = [item for item in items if not _is_named(config, item)]
    by_module: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in candidates:
        if hasattr(_module(item), NUMBER):
            by_module[_file(item)].append(item)
    left_out: set[pytest.Item] = set()
    for file, tests in by_module.items():
        left_out.update(_not_drawn(tests, int(getattr(_module(tests[0]), NUMBER)), file))
    left_out_files = LONG_FILES.keys() - drawn_files()
    left_out.update(item for item in candidates if _file(item) in left_out_files)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def drawn_files() -> set[str]:
    """Return the long files of this run: in an order that the seed determines, each that still fits in the minutes."""
    files, minutes = set(), 0.0
    for file in random.Random(f"{seed()} files").sample(sorted(LONG_FILES), len(LONG_FILES)):
        if minutes + LONG_FILES[file] <= MINUTES_IN_CI:
            files.add(file)
            minutes += LONG_FILES[file]
    return files


def _not_drawn(every: list[pytest.Item], number: int, what: str) -> list[pytest.Item]:
    """Return those that are not drawn. Seed and `what` determine the draw."""
    return random.Random(f"{seed()} {what}").sample(every, max(0, len(every) - number))


def _module(item: pytest.Item) -> object:
    return getattr(item, "module", None)


def _file(item: pytest.Item) -> str:
    """Return the path of the test's file below cdc_lake_tests."""
    return item.nodeid.split("::", 1)[0].rpartition("cdc_lake_tests/")[2]


def _is_named(config: pytest.Config, item: pytest.Item) -> bool:
    """Return whether the command line names the test or its file."""
    named = [config.invocation_params.dir / argument.split("::", 1)[0] for argument in config.args]
    return any(path.suffix == ".py" and path.resolve() == item.path for path in named)
