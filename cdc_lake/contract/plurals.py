"""Counts in messages and metadata, with the noun in singular or plural."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 object`, `2 objects`; the plural has an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
