"""An engine's jars and its Java, and the classes it loads, kept by the JVM in one file: it starts in half the time.

Java calls it a dynamic class data archive. It is made once by a run that loads what later ones will, and holds for one
Java and the very jars that it was made of: the JVM compares their sizes and times, passes over a file that does not
fit, and starts as without it.

Here: where it lies, keeping it, and what a JVM is told. Not here: what is run for it (spark_classes.py,
stack_classes.py).
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from infra.local.artifacts import SetupProgress
from infra.local.cache import cache_folder
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
        of = (str(self.java.resolve()), release.read_text() if release.exists() else "", repr(stats))
        return cache_folder() / NAME / f"{self.engine}-{digest(*of)}.jsa"

    def options(self) -> tuple[str, ...]:
        """What the JVM is told; nothing where there is no file."""
        found = self.archive()
        return (f"-XX:SharedArchiveFile={found}", *_QUIET) if found.is_file() else ()


def digest(*texts: str) -> str:
    """A short name for texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def recording(draft: Path) -> str:
    """The option by which a JVM writes its archive as it ends."""
    return f"-XX:ArchiveClassesAtExit={draft}"


Train = Callable[[Mapping[ClassPath, Path]], None]
"""Runs the engines so that the file of each is written; raises OSError, SubprocessError or StackError."""


def keep(paths: Sequence[ClassPath], train: Train, whose: str, progress: SetupProgress) -> str:
    """Make the files that are missing. Returns what is to be said where that fails: all runs without, only slower."""
    folder = cache_folder() / NAME
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        drafts = {path: path.archive().with_suffix(".tmp") for path in paths if not path.archive().is_file()}
        if not drafts:
            return ""
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
        name, began = f"{NAME} of {whose}", time.monotonic()
        progress.started(name, lambda: sum(draft.stat().st_size for draft in drafts.values() if draft.exists()))
        try:
            train(drafts)
            size = _finish(drafts)
        except (OSError, subprocess.SubprocessError, StackError) as error:
            progress.finished(name, 0, time.monotonic() - began)
            return (
                f"warning: the {name} could not be kept ({error}): all works, but each start takes some seconds longer"
            )
        progress.finished(name, size, time.monotonic() - began)
        return ""


def _finish(drafts: Mapping[ClassPath, Path]) -> int:
    """Put the drafts where they are looked for, and remove what fits nothing any more; returns the size of all.

    Raises StackError for those that were not written, when all others are in their places.
    """
    written = {path: draft for path, draft in drafts.items() if draft.is_file()}
    size = sum(draft.stat().st_size for draft in written.values())
    for path, draft in written.items():
        target = draft.rename(path.archive())
        for old in target.parent.glob(f"{path.engine}-*.jsa"):
            if old != target:
                old.unlink()
    if silent := sorted(path.engine for path in drafts.keys() - written.keys()):
        raise StackError(f"the JVM of {', '.join(silent)} wrote none")
    return size
