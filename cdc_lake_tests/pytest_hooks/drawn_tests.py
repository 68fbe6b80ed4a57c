"""CI runs some of the long tests, drawn by the seed; a full run has all.

A test module sets the number of its tests that CI runs as `TESTS_IN_CI`. Of LONG_FILES, whose tests continue each
other, CI runs FILES_IN_CI files. What the command line names with `::`, or as a file, always runs.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

from cdc_lake_tests.pytest_hooks.long_test_sizes import is_full, seed

NUMBER = "TESTS_IN_CI"
LONG_FILES: tuple[str, ...] = (
    "e2e/test_aws_profile.py",
    "e2e/test_pagila.py",
    "faults/verify/test_verify_under_load.py",
    "integration/chain/test_added_table.py",
    "integration/chain/formats/test_avro.py",
    "integration/chain/test_two_targets.py",
    "integration/infra/test_security.py",
)
FILES_IN_CI = 2

Drawn = TypeVar("Drawn")


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests that this run has not drawn from `items`, and report them to pytest as deselected."""
    if is_full():
        return
    candidates = [item for item in items if not _is_named(config, item)]
    by_module = _grouped(candidates, lambda item: _file(item) if hasattr(_module(item), NUMBER) else None)
    left_out: set[pytest.Item] = set()
    for file, tests in by_module.items():
        left_out.update(_rest(tests, int(getattr(_module(tests[0]), NUMBER)), file))
    files = _grouped(candidates, lambda item: _file(item) if _file(item) in LONG_FILES else None)
    for file in _rest(sorted(files), FILES_IN_CI, "files"):
        left_out.update(files[file])
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _rest(every: list[Drawn], number: int, what: str) -> list[Drawn]:
    """Return those that are not drawn. Seed and `what` determine the draw."""
    return random.Random(f"{seed()} {what}").sample(every, max(0, len(every) - number))


def _grouped(items: Iterable[pytest.Item], key: Callable[[pytest.Item], str | None]) -> dict[str, list[pytest.Item]]:
    found: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (name := key(item)) is not None:
            found[name].append(item)
    return found


def _module(item: pytest.Item) -> object:
    return getattr(item, "module", None)


def _file(item: pytest.Item) -> str:
    """Return the path of the test's file below cdc_lake_tests."""
    return item.nodeid.split("::", 1)[0].rpartition("cdc_lake_tests/")[2]


def _is_named(config: pytest.Config, item: pytest.Item) -> bool:
    """Return whether the command line names the test or its file."""
    named = [config.invocation_params.dir / argument.split("::", 1)[0] for argument in config.args]
    return any(path.suffix == ".py" and path.resolve() == item.path for path in named)
