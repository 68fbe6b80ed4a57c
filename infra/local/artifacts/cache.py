"""The user's cache folder: everything fetched once and shared by every stack of this user."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir

CACHE_VARIABLE = "CDC_LAKE_CACHE"


def cache_folder() -> Path:
    """CDC_LAKE_CACHE, else `cdc-lake` in the user's cache folder (XDG_CACHE_HOME counts). Not made.

    Links are followed, so that a cache which was moved away by a link can be made anew where the link points.
    """
    return Path(os.environ.get(CACHE_VARIABLE) or user_cache_dir("cdc-lake")).expanduser().resolve()


def tree_bytes(folder: Path) -> int:
    """The size of all files below the folder, hard links counted once; files that vanish meanwhile are not."""
    seen: dict[tuple[int, int], int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - called twice a second on big trees
            except FileNotFoundError:
                continue
            seen[(found.st_dev, found.st_ino)] = found.st_size
    return sum(seen.values())
