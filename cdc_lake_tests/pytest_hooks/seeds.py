"""Seeds of random tests: an environment variable sets a seed, and every failure names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def named_in_failures(variable: str, seed: int) -> Iterator[None]:
    """Add the seed, and the variable that repeats it, to the text of a failure in the block or the decorated test."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"seed {seed}: repeat with {variable}={seed}")
        raise
