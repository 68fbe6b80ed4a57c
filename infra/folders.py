"""The two folders of cdc-lake on a machine: the user's cache, and the state folder of a project."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir

CACHE_VARIABLE = "CDC_LAKE_CACHE"
HOME_VARIABLE = "CDC_LAKE_HOME"
_STATE = ".cdc-lake"
_PROJECT_FILES = ("pyproject.toml", "workspace.yaml", ".git")


def cache_folder() -> Path:
    """Return the folder of files that are fetched once and shared by all stacks of this user.

    It is CDC_LAKE_CACHE, or else `cdc-lake` in the user's cache folder (XDG_CACHE_HOME). The folder is not created.

    Symbolic links are resolved, so that a caller can create the folder even if it is a link to a missing folder.
    """
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_dir("cdc-lake")).expanduser().resolve()


def state_folder(option: Path | None = None) -> Path:
    """Return `option`, else CDC_LAKE_HOME, else `.cdc-lake` in the project of the working directory.

    The folder is not created.
    """
    chosen = option or os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser().resolve() if chosen else project_root(Path.cwd()) / _STATE


def project_root(start: Path) -> Path:
    """Return the nearest folder at or above `start` that contains a project's files; `start` if no folder does."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if any((folder / name).exists() for name in _PROJECT_FILES):
            return folder
    return start


def tree_bytes(folder: Path) -> int:
    """Return the total size of the files below the folder in bytes.

    A file with several hard links counts once. A file that is deleted during the call does not count.
    """
    seen: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - faster; called twice a second on large trees
            except FileNotFoundError:
                continue
            seen[(found.st_dev, found.st_ino)] = found.st_size
    return sum(seen.values())
