"""Failures of randomized tests name the seed that repeats them."""

from __future__ import annotations

import pytest

from cdc_lake_tests.pytest_hooks.seeds import named_in_failures


@named_in_failures("SOME_SEED", 7)
def broken(text: str) -> None:
    raise RuntimeError(text)


def test_the_seed_is_in_the_notes_of_the_failure() -> None:
    with pytest.raises(RuntimeError, match="lost") as raised:
        broken("lost")
    assert raised.value.__notes__ == ["seed 7: repeat with SOME_SEED=7"]
