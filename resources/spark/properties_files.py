"""Reads files with Spark's settings, `key value` a line, as spark-submit does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def read(paths: Iterable[str]) -> dict[str, str]:
    """Return the settings of all files; later ones take precedence."""
    return {name: value for path in paths for name, value in _pairs(Path(path))}


def _pairs(path: Path) -> Iterable[tuple[str, str]]:
    for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line and not line.startswith("#"):
            name, value = line.split(maxsplit=1)
            yield name, value.strip()
