"""A Spark session for runs that must not use Spark."""

from __future__ import annotations

from typing import NoReturn


class NoSpark:
    """A Spark session that fails on any use."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"Spark was used: {name}")
