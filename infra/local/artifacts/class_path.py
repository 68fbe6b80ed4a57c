"""The class path of an engine, and the JVM's archive of the classes that it loads, which shortens the engine's start.

Java calls the file a dynamic class data sharing archive. A training run writes it once. It is valid for one Java and
for the jars that it was made from: the JVM compares their sizes and times, and ignores an archive that does not match.
It extends the archive of Java's own classes, which must exist.
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
"""Without these, the JVM reports in the engine's log that it ignores an archive."""


@dataclass(frozen=True)
class ClassPath:
    """The home of a Java and the folders of jars that one engine runs from."""

    engine: str
    java: Path
    folders: tuple[Path, ...]

    def archive(self) -> Path:
        """Return the path of the archive for this Java and the current jars, whether the file exists or not."""
        release = self.java / "release"
        jars = [jar for folder in self.folders for jar in sorted(folder.glob("*.jar"))]
        stats = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
        of = (release.read_text() if release.exists() else "", repr(stats))
        return cache_folder() / NAME / f"{self._place()}-{_digest(of)}.jsa"

    def options(self) -> tuple[str, ...]:
        """Return the JVM options that use the archive; none if it does not exist."""
        found = self.archive()
        return (f"-XX:SharedArchiveFile={found}", *_QUIET) if found.is_file() else ()

    def outdated(self) -> Iterable[Path]:
        """Return archives of the same Java and folders that were made from earlier contents."""
        return (each for each in (cache_folder() / NAME).glob(f"{self._place()}-*.jsa") if each != self.archive())

    def _place(self) -> str:
        return f"{self.engine}-{_digest((str(self.java.resolve()), *map(str, self.folders)))}"


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def recording(draft: Path | str) -> str:
    """Return the JVM option that writes the archive when the JVM ends."""
    return f"-XX:ArchiveClassesAtExit={draft}"


Train = Callable[[Mapping[ClassPath, Path]], None]
"""Run the engines so that each writes its archive; raises OSError, SubprocessError or StackError."""


def keep(paths: Sequence[ClassPath], train: Train, whose: str, progress: SetupProgress) -> str:
    """Create the missing archives, if Java can. Returns a warning if that fails, else an empty string.

    The engines also run without archives, but start more slowly.
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
    """Move the drafts to their places and delete outdated archives; return the size of the new ones in bytes.

    Raises StackError that names the engines without a draft, after the other drafts are in place.
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
