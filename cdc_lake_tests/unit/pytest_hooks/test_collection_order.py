"""The order of the test suites: its folders exist, and suites that share a stack run together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdc_lake_tests.pytest_hooks import collection_order

TESTS = Path(collection_order.__file__).parents[1]


@pytest.mark.parametrize("folder", [*collection_order.LONGEST_FIRST, *collection_order.ONE_STACK])
def test_every_listed_folder_has_tests(folder: str) -> None:
    assert list(TESTS.glob(f"{folder}/**/test_*.py")) or list(TESTS.glob(f"{folder}*.py"))


def test_faults_that_share_a_stack_run_last() -> None:
    """Their stack would keep running next to the stack of the following tests."""
    files = [str(file.relative_to(TESTS)) for file in TESTS.rglob("test_*.py")]
    suites = [file for file in files if file.startswith(("integration/", "e2e/", "faults/"))]
    in_order = sorted(suites, key=lambda file: collection_order.rank(f"cdc_lake_tests/{file}"))
    sharing_a_stack = [file for file in in_order if re.match(r"faults/(?!infra/|jobs/)", file)]
    assert in_order[-len(sharing_a_stack) :] == sharing_a_stack
    assert in_order.index("faults/jobs/upsert/test_upsert_history.py") < in_order.index("faults/kills/test_kills.py")


def test_tests_that_share_a_stack_are_one_group() -> None:
    chain, demo = "cdc_lake_tests/integration/chain/", "cdc_lake_tests/e2e/"
    assert collection_order.group(f"{chain}test_empty.py::test_a") == collection_order.group(
        f"{chain}test_types.py::test_b[c::d]"
    )
    assert collection_order.group(f"{demo}test_demo.py::test_a") == collection_order.group(f"{demo}test_ui.py::test_b")
    assert collection_order.group(f"{demo}test_demo.py::test_a") != collection_order.group(
        f"{demo}test_aws_profile.py::test_b"
    )
    assert collection_order.group("cdc_lake_tests/unit/test_x.py::test_a[b::c]") == "cdc_lake_tests/unit/test_x.py"
