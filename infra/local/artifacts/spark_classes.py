"""The class path of the Spark jobs on this machine, and the training run that writes its class archive."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from infra.local.artifacts.artifacts import SetupProgress, jars
from infra.local.artifacts.cache import cache_folder
from infra.local.artifacts.class_path import ClassPath, keep
from infra.local.artifacts.java import java_home
from infra.local.errors import StackError

_TRAINING = "infra.local.artifacts.spark_training"
_SECONDS = 600.0


def spark_class_path(java: Path, folder: Path) -> ClassPath:
    """Return the class path: the jars of PySpark in this virtual environment, and those in the folder."""
    return ClassPath("spark", java, (Path(sysconfig.get_path("purelib"), "pyspark", "jars"), folder))


def java_options(java: Path, folder: Path) -> str:
    """Return the options for the JVM of a Spark session; empty if there is no archive."""
    return " ".join(spark_class_path(java, folder).options())


def ensure(progress: SetupProgress) -> str:
    """Create the archive if it is missing. Returns a warning if that fails, else an empty string.

    Raises ArtifactsMissing if the jars are not in the cache.
    """
    return keep([spark_class_path(java_home(17), jars("spark"))], _train, "Spark", progress)


def _train(drafts: Mapping[ClassPath, Path]) -> None:
    log = cache_folder() / "logs" / "setup-spark-classes.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    for path, draft in drafts.items():
        given = {"JAVA_HOME": str(path.java), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        try:
            with log.open("wb") as output:
                subprocess.run(
                    [sys.executable, "-m", _TRAINING, str(path.folders[-1]), str(draft)],
                    env={**os.environ, **given},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_SECONDS,
                    check=True,
                )
        except subprocess.SubprocessError as error:
            raise StackError(f"{error}; see {log}") from error
