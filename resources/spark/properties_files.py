"""Reads Spark's properties files as spark-submit does: each line is a key and a value, separated by whitespace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def read(paths: Iterable[str]) -> dict[str, str]:
    """Return the settings of all files; a later file overrides an earlier one."""
    return {name: value for path in paths for name, value in _pairs(Path(path))}


def _pairs(path: Path) -> Iterable[tuple[str, str]]:
    for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line and not line.startswith("#"):
            name, value = line.split(maxsplit=1)
            yield name, value.strip()
