"""Installs HoodieStreamer with its own Spark into the cache folder, apart from cdc-lake's.

`python -m benchmarks.peers.hoodie_streamer.environment` writes the lock of its jars.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.peers import own_packages
from infra.artifacts import jar_locks, maven
from infra.folders import cache_folder

POM = Path(__file__).with_name("pom.xml")
UTILITIES = "hudi-utilities_2.12-0.14.0.jar"
"""HoodieStreamer's jar, which pom.xml writes again with other package names."""


def spark() -> Path:
    """Return the folder of its Spark; install it if it is missing."""
    return own_packages.installed("hoodie-streamer-spark", POM.with_name("requirements.lock")) / "pyspark"


def jars() -> Path:
    """Return the folder of its jars; fetch them if it is missing. Raises a StackError if one cannot be fetched.

    The folder's name contains a hash of the pom and of its lock.
    """
    digest = hashlib.sha256(POM.read_bytes() + POM.with_name(jar_locks.NAME).read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "jars" / f"hoodie-streamer-{digest}"
    if not folder.is_dir():
        draft = folder.with_name(f"{folder.name}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as scratch:
            _fetch(draft, Path(scratch))
            jar_locks.verify(draft, POM)
            _rename_packages(draft / UTILITIES, Path(scratch))
        draft.rename(folder)
    return folder


def _fetch(into: Path, scratch: Path) -> None:
    maven.copy_dependencies(POM, into, scratch / "m2", scratch / "log")


def _rename_packages(jar: Path, scratch: Path) -> None:
    command = ["mvn", "-B", "-ntp", "-q", "-f", str(POM), "package", f"-Dmaven.repo.local={scratch / 'm2'}"]
    subprocess.run([*command, f"-Dtarget={scratch / 'target'}"], check=True)
    (scratch / "target" / "hoodie-streamer-1.jar").replace(jar)


def main() -> None:
    """Write the lock of the jars."""
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as scratch:
        _fetch(Path(scratch, "jars"), Path(scratch))
        jar_locks.write(Path(scratch, "jars"), POM)


if __name__ == "__main__":
    main()
