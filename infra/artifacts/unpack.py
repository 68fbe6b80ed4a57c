"""Unpacks vendors' tarballs, completely or only some folders.

Trino's archive stores each jar once; other plugins contain hard links to it. A wanted member can be a hard link to a
member outside the wanted folders, so a first pass finds the members that contain the data, and a second pass unpacks
them.

`tarfile.extractall` is not used: its filters came with Python 3.11.4, and Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from infra.errors import StackError

_AGAIN = "Run `cdc-lake setup` again; if it fails again, ask the operator of the Maven repository."


def unpack(archive: Path, into: Path) -> None:
    """Unpack all files of the archive. Raises StackError for links and for members outside the folder."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isdir():
                continue
            source = tar.extractfile(member) if member.isreg() else None
            if source is None:
                raise StackError(
                    f"Cannot unpack {archive.name}: its member {member.name} is not a regular file. {_AGAIN}"
                )
            with source:
                _write(source, _inside(into, member.name))


def unpack_folders(archive: Path, into: Path, folders: Sequence[str]) -> None:
    """Unpack only the files below `folders`, which are named without the archive's top folder.

    Hard links in the archive become hard links on disk. Raises StackError if one of the folders is not in the archive,
    or if a link's target is missing.
    """
    wanted, targets = _plan(archive, folders)
    written: set[str] = set()
    with tarfile.open(archive) as tar:
        for member in tar:
            names = wanted.get(member.name)
            source = tar.extractfile(member) if names and member.isreg() else None
            if not names or source is None:
                continue
            first, *rest = [_inside(into, name) for name in names]
            with source:
                _write(source, first)
            for other in rest:
                other.parent.mkdir(parents=True, exist_ok=True)
                os.link(first, other)
            written.update(names)
    if missing := sorted(targets - written):
        raise StackError(
            f"Cannot unpack {archive.name}: {missing[0]} links to a file that is not in the archive. {_AGAIN}"
        )


def _plan(archive: Path, folders: Sequence[str]) -> tuple[dict[str, list[str]], set[str]]:
    """Return the target names of each needed archive member, and the set of all target names."""
    links: dict[str, str] = {}
    kept: list[str] = []
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.islnk():
                links[member.name] = member.linkname
            if (member.isreg() or member.islnk()) and _below(member.name, folders):
                kept.append(member.name)
    for folder in folders:
        if not any(_below(name, [folder]) for name in kept):
            raise StackError(
                f"Cannot unpack {archive.name}: it has no folder {folder}, so it is not the expected release. {_AGAIN}"
            )
    wanted: dict[str, list[str]] = {}
    for name in kept:
        origin = name
        while origin in links:
            origin = links[origin]
        wanted.setdefault(origin, []).append(str(PurePosixPath(*PurePosixPath(name).parts[1:])))
    return wanted, {name for names in wanted.values() for name in names}


def _write(source: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        shutil.copyfileobj(source, target, 1024 * 1024)


def _below(name: str, folders: Sequence[str]) -> bool:
    inner = PurePosixPath(*PurePosixPath(name).parts[1:])
    return any(inner.is_relative_to(folder) for folder in folders)


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise StackError(f"Cannot unpack {name}: it would be written outside of {folder}. {_AGAIN}")
    return path
