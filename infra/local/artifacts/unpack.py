"""Unpacks the needed files from the vendors' tarballs.

Trino's archive stores each jar once; other plugins have hard links to it. A needed member can be a hard link to a
member that is not needed, so the first pass finds the members with the needed bytes and the second pass reads them.

`tarfile.extractall` is not used: its filters came with Python 3.11.4, and Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from infra.local.errors import StackError


def unpack(archive: Path, into: Path) -> None:
    """Unpack the archive's files. Raises StackError for links and for members outside the folder."""
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isdir():
                continue
            source = tar.extractfile(member) if member.isreg() else None
            if source is None:
                raise StackError(f"{archive.name} has a member that is no file, which was not expected: {member.name}")
            with source:
                _write(source, _inside(into, member.name))


def unpack_parts(archive: Path, into: Path, parts: Sequence[str]) -> None:
    """Unpack only the files below the folders `parts`, which are named without the archive's top folder.

    A hard link becomes a file with its own name that shares its bytes with the other names. Raises StackError if a part
    is not in the archive, or a link's target is missing.
    """
    wanted, copies = _plan(archive, parts)
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
    if lost := sorted(copies - written):
        raise StackError(f"{archive.name} is incomplete: {lost[0]} points to a file that is not in it")


def _plan(archive: Path, parts: Sequence[str]) -> tuple[dict[str, list[str]], set[str]]:
    """Return the target names of each needed archive member, and the set of all target names."""
    links: dict[str, str] = {}
    kept: list[str] = []
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.islnk():
                links[member.name] = member.linkname
            if (member.isreg() or member.islnk()) and _below(member.name, parts):
                kept.append(member.name)
    for part in parts:
        if not any(_below(name, [part]) for name in kept):
            raise StackError(f"{archive.name} has no folder {part}: it is not the release that this was written for")
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


def _below(name: str, parts: Sequence[str]) -> bool:
    inner = PurePosixPath(*PurePosixPath(name).parts[1:])
    return any(inner.is_relative_to(part) for part in parts)


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise StackError(f"the archive has a member that leaves its folder: {name}")
    return path
