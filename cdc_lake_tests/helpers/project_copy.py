"""A copy of the project whose files a test may change; programs use it with the copy in PYTHONPATH."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("cdc_lake", "connectors", "infra", "resources")


def copy_project(folder: Path, packages: Sequence[str] = PRODUCT) -> None:
    """Copy packages and project files into a folder; the modules keep their times, so that their bytecode is valid."""
    for name in packages:
        shutil.copytree(ROOT / name, folder / name)
    for file in ("pyproject.toml", "workspace.yaml"):
        shutil.copy2(ROOT / file, folder)


def replace_text(file: Path, old: str, new: str) -> None:
    """Replace a text that is in the file once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
    file.write_text(text.replace(old, new), encoding="utf-8")
