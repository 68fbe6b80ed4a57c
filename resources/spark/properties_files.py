"""Files with Spark's settings, `key value` a line, as spark-submit reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def read(paths: Iterable[str]) -> dict[str, str]:
    """The settings of all files; later ones win."""
    return {name: value for path in paths for name, value in _pairs(Path(path))}


def _pairs(path: Path) -> Iterable[tuple[str, str]]:
    for line in map(str.strip, path.read_text().splitlines()):
        if line and not line.startswith("#"):
            name, value = line.split(maxsplit=1)
            yield name, value.strip()
