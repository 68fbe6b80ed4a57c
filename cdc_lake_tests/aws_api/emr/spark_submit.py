"""Runs Spark jobs by PySpark's spark-submit, as `local[2]` with a stack's object store.

What differs from EMR: program and packages are the uploaded ones, but the jars are those of the local profile, and the
interpreter is this one, so those that a request names are ignored.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark

from cdc_lake_tests.aws_api.emr.runs import Execute, Run
from infra.artifacts.spark_classes import java_options
from infra.local.stack.endpoints import Endpoints

_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_IGNORED = ("spark.archives", "spark.pyspark.", "spark.executorEnv.", "spark.emr-serverless.")
"""Settings of EMR's machines and interpreters begin so."""
# As in the local profile, but without its daemon of Python workers, which does not see the uploaded packages.
_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Djol.skipHotspotSAAttach=true"
_GRACE_SECONDS = 10.0


def spark_submit(at: Endpoints, aws_url: str, s3: Any, state: Path) -> Execute:  # noqa: ANN401 - boto3's client
    """Return what runs a job; stdout and stderr are in a folder of `state`. `aws_url` has Secrets Manager."""

    def execute(run: Run) -> str:
        folder = state / run.id
        folder.mkdir(parents=True)
        files = [_fetched(s3, uri, folder) for uri in (run.job.entry, *run.job.py_files)]
        settings = {name: value for name, value in run.job.settings.items() if not name.startswith(_IGNORED)}
        command = [str(_SUBMIT)]
        for name, value in {**settings, **_settings(at, folder)}.items():
            command += ["--conf", f"{name}={value}"]
        if files[1:]:
            command += ["--py-files", ",".join(map(str, files[1:]))]
        code = _run([*command, str(files[0]), *run.job.arguments], _environment(at, aws_url), folder, run)
        return f"spark-submit ended with {code}: {_last_line(folder / 'stderr')}" if code else ""

    return execute


def _settings(at: Endpoints, folder: Path) -> dict[str, str]:
    """Return the settings that win over a request's."""
    return {
        "spark.master": "local[2]",
        "spark.submit.deployMode": "client",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {_JVM} {java_options(at.java_home, at.spark_jars)}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.hadoop.fs.s3a.endpoint": at.s3_endpoint,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.buffer.dir": str(folder),
        "spark.hadoop.hadoop.tmp.dir": str(folder),
    }


def _environment(at: Endpoints, aws_url: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("CDC_LAKE_")}
    return {
        **kept,
        "JAVA_HOME": str(at.java_home),
        "SPARK_HOME": str(_SUBMIT.parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DIST_CLASSPATH": os.pathsep.join(sorted(map(str, at.spark_jars.glob("*.jar")))),
        "AWS_ACCESS_KEY_ID": at.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": at.s3_secret_key.get_secret_value(),
        "AWS_DEFAULT_REGION": at.region,
        "AWS_ENDPOINT_URL": aws_url,
        "AWS_ENDPOINT_URL_S3": at.s3_endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _run(command: list[str], environment: dict[str, str], folder: Path, run: Run) -> int:
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True)
    while process.poll() is None:
        if run.cancelled.wait(0.1):
            _signal(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
            _signal(process, signal.SIGKILL)
            process.wait()
    return process.returncode


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal the process group, unless the process has ended: its id may belong to another process then."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _fetched(s3: Any, uri: str, folder: Path) -> Path:  # noqa: ANN401 - boto3's client
    parts = urlsplit(uri)
    target = folder / parts.path.rpartition("/")[2]
    s3.download_file(parts.netloc, parts.path.lstrip("/"), str(target))
    return target


def _last_line(path: Path) -> str:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it has written no log"
