"""The class data sharing (CDS) archive of local Spark sessions, which the first session writes when it ends.

With it, a session and two small Hudi writes take 11.3 instead of 16.8 s (two cores, medians of three pairs). Spark 3.5
runs on Java 17, which ignores an archive after its Java or jars have changed and does not replace it. The archive's
file name therefore contains a hash of the files' sizes and modification times.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from infra.artifacts.class_path import NAME, QUIET, digest
from infra.artifacts.java import has_classes
from infra.folders import cache_folder

_MAGIC = 0xF00BABA8.to_bytes(4, "little")
"""The first bytes of an archive (HotSpot's CDS_DYNAMIC_ARCHIVE_MAGIC). The JVM writes them last, so an incomplete file
of a killed JVM does not contain them."""


def archive(java: Path, folder: Path) -> Path:
    """Return the path of the archive, whether it exists or not.

    The name depends on the Java, on the jars of PySpark in this virtual environment, and on the jars in `folder`.
    """
    folders = (Path(sysconfig.get_path("purelib"), "pyspark", "jars"), folder)
    files = [java / "release", *(jar for each in folders for jar in sorted(each.glob("*.jar")))]
    stats = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in files if each.exists()]
    place = digest((str(java.resolve()), *map(str, folders)))
    return cache_folder() / NAME / f"spark-{place}-{digest(map(str, stats))}.jsa"


def java_options(java: Path, folder: Path) -> str:
    """Return the options for the JVM of a Spark session, quoted for Spark.

    If the archive is complete, the JVM loads it. Otherwise the JVM writes it at exit, which takes some seconds, and
    this function deletes outdated archives. Two JVMs can write it at the same time: each replaces the file by its own.
    Returns an empty string if this Java has no base CDS archive, which the session's archive extends.
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
