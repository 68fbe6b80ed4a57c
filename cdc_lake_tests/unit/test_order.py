"""The order of the suites names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdc_lake_tests import collection_order

TESTS = Path(collection_order.__file__).parent


@pytest.mark.parametrize("place", [*collection_order.LONGEST_FIRST, *collection_order.ONE_STACK])
def test_every_place_has_tests(place: str) -> None:
    assert list(TESTS.glob(f"{place}/**/test_*.py")) or list(TESTS.glob(f"{place}*.py"))


def test_nothing_comes_after_the_faults_that_share_a_stack() -> None:
    """That stack, with everything in it, would run on beside the next one."""
    files = [str(file.relative_to(TESTS)) for file in TESTS.rglob("test_*.py")]
    suites = [file for file in files if file.startswith(("integration/", "e2e/", "faults/"))]
    in_order = sorted(suites, key=lambda file: collection_order.rank(f"cdc_lake_tests/{file}"))
    sharing = [file for file in in_order if re.match(r"faults/test_", file)]
    assert in_order[-len(sharing) :] == sharing
    assert in_order.index("faults/jobs/test_upsert_history.py") < in_order.index("faults/test_kills.py")


def test_what_shares_a_stack_is_one_group() -> None:
    chain, demo = "cdc_lake_tests/integration/chain/", "cdc_lake_tests/e2e/"
    assert collection_order.group(f"{chain}test_empty.py::test_a") == collection_order.group(
        f"{chain}test_types.py::test_b[c::d]"
    )
    assert collection_order.group(f"{demo}test_demo.py::test_a") == collection_order.group(f"{demo}test_ui.py::test_b")
    assert collection_order.group(f"{demo}test_demo.py::test_a") != collection_order.group(
        f"{demo}test_aws_profile.py::test_b"
    )
    assert (
        collection_order.group("cdc_lake_tests/unit/test_order.py::test_a[b::c]") == "cdc_lake_tests/unit/test_order.py"
    )
