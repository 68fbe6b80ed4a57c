"""The user's cache folder: files that are fetched once and shared by all stacks of this user."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir

CACHE_VARIABLE = "CDC_LAKE_CACHE"


def cache_folder() -> Path:
    """Return CDC_LAKE_CACHE, or else `cdc-lake` in the user's cache folder (XDG_CACHE_HOME). The folder is not created.

    Symbolic links are resolved, so that a cache folder that is a link to a missing folder can be created there.
    """
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_dir("cdc-lake")).expanduser().resolve()


def tree_bytes(folder: Path) -> int:
    """Return the total size of the files below the folder in bytes. Hard links count once, deleted files do not
    count."""
    seen: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - called twice a second on big trees
            except FileNotFoundError:
                continue
            seen[(found.st_dev, found.st_ino)] = found.st_size
    return sum(seen.values())
