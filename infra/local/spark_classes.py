"""The classes that Spark's jobs load, kept by the JVM in one file: sessions start in half the time.

Java calls it a dynamic class data archive. It is made once by a small job (spark_training.py), and holds for one Java,
one virtual environment and the very jars that it was made of: the JVM compares their sizes and times, passes over a
file that does not fit, and starts as without it.

Here: where it lies, making it, and what a JVM is told. Not here: what is run for it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from filelock import FileLock

from infra.local.artifacts import SetupProgress, jars
from infra.local.cache import cache_folder
from infra.local.java import java_home

NAME = "classes"
_TRAINING = "infra.local.spark_training"
_SECONDS = 600.0


def archive(java: Path, folder: Path) -> Path:
    """The file for this Java, Spark's own jars and those of the folder as they are now, whether it is there or not."""
    release = java / "release"
    packages = sysconfig.get_path("purelib")
    jars_there = sorted((*Path(packages, "pyspark", "jars").glob("*.jar"), *folder.glob("*.jar")))
    stats = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in jars_there]
    of = [str(java.resolve()), release.read_text() if release.exists() else "", repr(stats)]
    return cache_folder() / NAME / f"spark-{_digest(packages)}-{_digest(*of)}.jsa"


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def java_options(java: Path, folder: Path) -> str:
    """What the JVM of a session is told; nothing where there is no file."""
    found = archive(java, folder)
    return f"-XX:SharedArchiveFile={found} -Xlog:cds=off -Xlog:class+path=off" if found.is_file() else ""


def ensure(progress: SetupProgress) -> str:
    """Make the file if it is missing. Returns what is to be said where that fails: all runs without it, only slower.

    Raises ArtifactsMissing before the jars are there.
    """
    java, folder = java_home(17), jars("spark")
    target = archive(java, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.parent / "lock"):
        if target.is_file():
            return ""
        draft = target.with_suffix(".tmp")
        draft.unlink(missing_ok=True)
        began = time.monotonic()
        progress.started(NAME, lambda: draft.stat().st_size if draft.exists() else 0)
        failure = _train(java, folder, draft)
        if not failure:
            draft.rename(target)
            # What this virtual environment had before fits nothing any more.
            for old in target.parent.glob(f"{target.stem.rpartition('-')[0]}-*.jsa"):
                if old != target:
                    old.unlink()
        progress.finished(NAME, target.stat().st_size if not failure else 0, time.monotonic() - began)
        return failure


def _train(java: Path, folder: Path, draft: Path) -> str:
    log = cache_folder() / "logs" / f"setup-{NAME}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    given = {"JAVA_HOME": str(java), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        with log.open("wb") as output:
            subprocess.run(
                [sys.executable, "-m", _TRAINING, str(folder), str(draft)],
                env={**os.environ, **given},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                check=True,
            )
        draft.stat()
    except (subprocess.SubprocessError, FileNotFoundError) as error:
        return (
            f"warning: the classes that Spark loads could not be kept ({error}; see {log}): all works, but each Spark "
            "session takes some seconds longer to start"
        )
    return ""
