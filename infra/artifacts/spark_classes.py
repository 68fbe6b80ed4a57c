"""The archive of the classes that Spark jobs load on this machine, which the first session writes when it ends.

It takes a session and two small Hudi writes from 16.8 to 11.3 s (two cores, medians of three pairs). Spark 3.5 runs on
Java 17, which does not keep such an archive up to date by itself: the JVM ignores one whose Java or jars have changed.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from infra.artifacts.class_path import NAME, QUIET, digest
from infra.artifacts.java import has_classes
from infra.folders import cache_folder

_MAGIC = 0xF00BABA8.to_bytes(4, "little")
"""The first bytes of an archive (HotSpot's CDS_DYNAMIC_ARCHIVE_MAGIC). The JVM writes them last, so that a file that a
killed JVM left incomplete does not have them."""


def archive(java: Path, folder: Path) -> Path:
    """Return the path of the archive, whether it exists or not.

    It depends on the Java, the jars of PySpark in this virtual environment, and those in `folder`.
    """
    folders = (Path(sysconfig.get_path("purelib"), "pyspark", "jars"), folder)
    files = [java / "release", *(jar for each in folders for jar in sorted(each.glob("*.jar")))]
    stats = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in files if each.exists()]
    place = digest((str(java.resolve()), *map(str, folders)))
    return cache_folder() / NAME / f"spark-{place}-{digest(map(str, stats))}.jsa"


def java_options(java: Path, folder: Path) -> str:
    """Return the options for the JVM of a Spark session, quoted for Spark.

    They use the archive if it is complete. Otherwise they write it when the JVM ends, which takes some seconds more,
    and outdated archives are deleted. Two JVMs may write it at once: each writes its own file and then owns the name.
    There are no options for a Java without an archive of its own classes, which this one extends.
    """
    if not has_classes(java):
        return ""
    path = archive(java, folder)
    if _is_complete(path):
        option = "SharedArchiveFile"
    else:
        option = "ArchiveClassesAtExit"
        path.parent.mkdir(parents=True, exist_ok=True)
        for outdated in path.parent.glob(f"{path.name.rpartition('-')[0]}-*.jsa"):
            if outdated != path:
                outdated.unlink(missing_ok=True)
    return " ".join((f'"-XX:{option}={path}"', *QUIET))


def _is_complete(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except FileNotFoundError:
        return False
