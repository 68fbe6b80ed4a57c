"""Installs HoodieStreamer and its Spark into the cache folder, separate from cdc-lake's packages and jars.

`python -m benchmarks.peers.hoodie_streamer.environment` writes the lock of its jars.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.peers import separate_packages
from infra.artifacts import jar_locks, maven
from infra.errors import StackError
from infra.folders import cache_folder

POM = Path(__file__).with_name("pom.xml")
UTILITIES = "hudi-utilities_2.12-0.14.0.jar"
"""HoodieStreamer's jar. `mvn package` renames some of its packages (pom.xml)."""


def spark() -> Path:
    """Return the folder of HoodieStreamer's Spark; install it if it is missing."""
    packages = separate_packages.installed("hoodie-streamer-spark", POM.with_name("requirements.lock"))
    return packages / "pyspark"


def jars() -> Path:
    """Return the folder of HoodieStreamer's jars; fetch them if it is missing.

    The folder's name contains a hash of the pom and of its lock. Raises a StackError if a jar cannot be fetched or has
    another SHA-256 sum than in the lock, and CalledProcessError if its packages cannot be renamed.
    """
    digest = hashlib.sha256(POM.read_bytes() + POM.with_name(jar_locks.NAME).read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "jars" / f"hoodie-streamer-{digest}"
    if not folder.is_dir():
        draft = folder.with_name(f"{folder.name}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as scratch:
            try:
                _fetch(draft, Path(scratch, "m2"))
                jar_locks.verify(draft, POM)
            except StackError:
                shutil.rmtree(draft, ignore_errors=True)
                raise
            _rename_packages(draft / UTILITIES, Path(scratch))
        draft.rename(folder)
    return folder


def _fetch(into: Path, repository: Path) -> None:
    maven.copy_dependencies(POM, into, repository, cache_folder() / "logs" / "setup-hoodie-streamer.log")


def _rename_packages(jar: Path, scratch: Path) -> None:
    command = ["mvn", "-B", "-ntp", "-q", "-f", str(POM), "package", f"-Dmaven.repo.local={scratch / 'm2'}"]
    subprocess.run([*command, f"-Dtarget={scratch / 'target'}"], check=True)
    shutil.copyfile(scratch / "target" / "hoodie-streamer-1.jar", jar)


def main() -> None:
    """Write the lock of the jars."""
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as scratch:
        _fetch(Path(scratch, "jars"), Path(scratch, "m2"))
        jar_locks.write(Path(scratch, "jars"), POM)


if __name__ == "__main__":
    main()
