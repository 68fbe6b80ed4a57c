"""The classes that Spark's jobs load, kept by the JVM in one file: sessions start in half the time.

Java calls it a dynamic class data archive. It is made once by a small job (spark_training.py), and holds for one Java,
one virtual environment and one set of jars: the JVM passes over a file that does not fit, and starts as without it.

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
    """The file for this Java and the folder of jars in this virtual environment, whether it is there or not."""
    listed = sorted(each.name for each in folder.glob("*.jar"))
    of = "\n".join([str(java.resolve()), str(folder), sysconfig.get_path("purelib"), *listed])
    return cache_folder() / NAME / f"spark-{hashlib.sha256(of.encode()).hexdigest()[:12]}.jsa"


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
        progress.finished(NAME, target.stat().st_size if not failure else 0, time.monotonic() - began)
        return failure


def _train(java: Path, folder: Path, draft: Path) -> str:
    log = cache_folder() / "logs" / f"setup-{NAME}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    given = {"JAVA_HOME": str(java), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", _TRAINING, str(folder), str(draft)],
            env={**os.environ, **given},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
    if done.returncode == 0 and draft.is_file():
        return ""
    return (
        f"warning: the classes that Spark loads could not be kept (exit code {done.returncode}; see {log}): all works, "
        "but each Spark session takes some seconds longer to start"
    )
