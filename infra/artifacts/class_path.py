"""The class path of an engine, and the JVM's archive of the classes that it loads, which shortens the engine's start.

Java calls the file a dynamic class data sharing archive. Java 19 and later creates it when the engine ends, and again
after its jars or its Java have changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from infra.artifacts.java import has_classes
from infra.folders import cache_folder

NAME = "classes"
QUIET = ("-Xlog:cds=off", "-Xlog:class+path=off")
"""Without these, the JVM reports in the engine's log that it ignores an archive."""


@dataclass(frozen=True)
class ClassPath:
    """The home of a Java 25 and the folders of jars that one engine runs from."""

    engine: str
    java: Path
    folders: tuple[Path, ...]

    def options(self) -> tuple[str, ...]:
        """Return the JVM options that use the archive and keep it up to date.

        Returns no options for a Java without an archive of its own classes, which this one extends: the engine then
        starts more slowly.
        """
        if not has_classes(self.java):
            return ()
        folder = cache_folder() / NAME
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"{self.engine}-{digest((str(self.java.resolve()), *map(str, self.folders)))}.jsa"
        return ("-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}", *QUIET)


def digest(texts: Iterable[str]) -> str:
    """Return a short hash of the texts for a file's name."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
