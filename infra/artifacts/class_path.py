"""The class path of an engine, and the class data sharing (CDS) archive that shortens the engine's start.

It is a dynamic CDS archive: a file with the classes that the engine loads. Java 19 and later writes the file when the
engine exits, and writes it again after the engine's jars or its Java have changed.
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
"""Options that suppress the JVM's log lines about a CDS archive that it ignores."""


@dataclass(frozen=True)
class ClassPath:
    """The Java home (24 or newer) and the jar folders of one engine."""

    engine: str
    java: Path
    folders: tuple[Path, ...]

    def options(self) -> tuple[str, ...]:
        """Return the JVM options that use the CDS archive and keep it up to date.

        Returns an empty tuple if this Java has no base CDS archive, which the engine's archive extends. The engine then
        starts more slowly.
        """
        if not has_classes(self.java):
            return ()
        folder = cache_folder() / NAME
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"{self.engine}-{digest((str(self.java.resolve()), *map(str, self.folders)))}.jsa"
        return ("-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}", *QUIET)


def digest(texts: Iterable[str]) -> str:
    """Return a hash of the texts for a file name: 12 hex digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
