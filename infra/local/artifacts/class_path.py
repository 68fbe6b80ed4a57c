"""An engine's jars and its Java, and the classes it loads, kept by the JVM in one file, so that it starts sooner.

Java calls it a dynamic class data archive. It is made once by a run that loads what later ones will, and holds for one
Java and the very jars that it was made of: the JVM compares their sizes and times, passes over a file that does not
fit, and starts as without it. It adds to Java's own archive, without which there is none.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from infra.local.artifacts.artifacts import SetupProgress
from infra.local.artifacts.cache import cache_folder
from infra.local.artifacts.java import has_classes
from infra.local.errors import StackError

NAME = "classes"
_QUIET = ("-Xlog:cds=off", "-Xlog:class+path=off")
"""A file that does not fit is no news for whoever reads the engine's log."""


@dataclass(frozen=True)
class ClassPath:
    """What one engine is run from: the home of a Java, and folders with jars."""

    engine: str
    java: Path
    folders: tuple[Path, ...]

    def archive(self) -> Path:
        """The file for this Java and these jars as they are now, whether it is there or not."""
        release = self.java / "release"
        jars = [jar for folder in self.folders for jar in sorted(folder.glob("*.jar"))]
        stats = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
        of = (release.read_text() if release.exists() else "", repr(stats))
        return cache_folder() / NAME / f"{self._place()}-{_digest(of)}.jsa"

    def options(self) -> tuple[str, ...]:
        """What the JVM is told; nothing where there is no file."""
        found = self.archive()
        return (f"-XX:SharedArchiveFile={found}", *_QUIET) if found.is_file() else ()

    def outdated(self) -> Iterable[Path]:
        """Files of the same Java and folders, which had other contents then."""
        return (each for each in (cache_folder() / NAME).glob(f"{self._place()}-*.jsa") if each != self.archive())

    def _place(self) -> str:
        return f"{self.engine}-{_digest((str(self.java.resolve()), *map(str, self.folders)))}"


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def recording(draft: Path | str) -> str:
    """The option by which a JVM writes its archive as it ends."""
    return f"-XX:ArchiveClassesAtExit={draft}"


Train = Callable[[Mapping[ClassPath, Path]], None]
"""Runs the engines so that the file of each is written; raises OSError, SubprocessError or StackError."""


def keep(paths: Sequence[ClassPath], train: Train, whose: str, progress: SetupProgress) -> str:
    """Make the files that are missing, where Java can. Returns what is to be said where that fails.

    All runs without, only slower.
    """
    folder = cache_folder() / NAME
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        missing = [path for path in paths if has_classes(path.java) and not path.archive().is_file()]
        drafts = {path: path.archive().with_suffix(".tmp") for path in missing}
        if not drafts:
            return ""
        name, began = f"{NAME} of {whose}", time.monotonic()
        progress.started(name, lambda: sum(map(_size, drafts.values())))
        try:
            _unlink(drafts.values())
            train(drafts)
            size = _finish(drafts)
        except (OSError, subprocess.SubprocessError, StackError) as error:
            progress.finished(name, 0, time.monotonic() - began)
            return (
                f"warning: the {name} could not be kept ({error}): all works, but each start takes some seconds longer"
            )
        finally:
            _unlink(drafts.values())
        progress.finished(name, size, time.monotonic() - began)
        return ""


def _finish(drafts: Mapping[ClassPath, Path]) -> int:
    """Put the drafts where they are looked for, and remove what fits nothing any more; returns the size of all.

    Raises StackError for those that were not written, when all others are in their places.
    """
    written = {path: draft for path, draft in drafts.items() if draft.is_file()}
    size = sum(map(_size, written.values()))
    for path, draft in written.items():
        draft.rename(path.archive())
        _unlink(path.outdated())
    if silent := sorted(path.engine for path in drafts.keys() - written.keys()):
        raise StackError(f"the JVM of {', '.join(silent)} wrote none")
    return size


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _unlink(paths: Iterable[Path]) -> None:
    for path in list(paths):
        path.unlink(missing_ok=True)
