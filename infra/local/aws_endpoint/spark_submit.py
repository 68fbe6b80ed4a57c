"""spark-submit as a step or a job run asks for it, and as it is run here.

Here: which arguments are taken, and the command made of them: PySpark's own spark-submit, local[2], with this machine's
object store. The endpoint and not the request decides where the run takes place: master, jars, the store and its keys.
The code is the one that was uploaded. Not here: which of Spark's settings are taken (spark_settings.py).

What differs from EMR: the jars that a request names have to be in S3, and those that the endpoint was started with are
used; one Python has everything, so interpreters and archives that a request names are passed over.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.aws_endpoint.spark_settings import passed_on, refused

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_LISTS = {"--py-files": "py_files", "--jars": "jars"}


class NotTakenError(Exception):
    """Arguments that EMR may take and this endpoint does not; the text says which it takes."""


class CannotStartError(Exception):
    """What a run needs is not there."""


@dataclass(frozen=True)
class Wanted:
    """What a request asks spark-submit for. All files are objects: s3://bucket/key."""

    entry: str
    arguments: Sequence[str] = ()
    py_files: Sequence[str] = ()
    jars: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def parsed(options: Sequence[str], settings: Mapping[str, str] | None = None) -> Wanted:
    """Options of spark-submit, then the program and its arguments. Raises NotTakenError."""
    found: dict[str, Any] = {"settings": dict(settings or {})}
    rest = list(options)
    while rest and rest[0].startswith("-"):
        option, value, rest = rest[0], rest[1] if len(rest) > 1 else "", rest[2:]
        name, equals, told = value.partition("=")
        if option == "--conf" and equals and name.startswith("spark."):
            found["settings"][name] = told
        elif option in _LISTS and value:
            found[_LISTS[option]] = tuple(value.split(","))
        elif (option, value) != ("--deploy-mode", "client"):
            raise NotTakenError(
                f"The local AWS endpoint does not take {option} {value}".rstrip()
                + ": only --deploy-mode client, --conf spark.<name>=<value>, --jars and --py-files."
            )
    if not rest:
        raise NotTakenError("There is no program for spark-submit among the arguments.")
    if names := refused(found["settings"]):
        raise NotTakenError(
            f"The local AWS endpoint does not take {', '.join(names)}: only the Spark settings that the jobs of "
            "cdc-lake need (infra/local/aws_endpoint/spark_settings.py lists them)."
        )
    wanted = Wanted(entry=rest[0], arguments=tuple(rest[1:]), **found)
    for uri in (wanted.entry, *wanted.py_files, *wanted.jars):
        place(uri)
    return wanted


def place(uri: str) -> tuple[str, str]:
    """Bucket and key of an object's address. Raises NotTakenError for another address."""
    parts = urlsplit(uri)
    if parts.scheme != "s3" or not parts.netloc or not parts.path.strip("/"):
        raise NotTakenError(f"The local AWS endpoint takes files from S3 only (s3://bucket/key), not {uri!r}.")
    return parts.netloc, parts.path.lstrip("/")


@dataclass(frozen=True)
class SparkHere:
    """Spark on this machine: what every run is given, whatever was asked."""

    java_home: str
    jars: Path
    """The folder of jars for the class path."""
    region: str
    s3_endpoint: str
    aws_endpoint: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    s3: Any = field(repr=False)
    """boto3's client of the store."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings that win over a request's."""
    submit: Path = field(default_factory=lambda: Path(pyspark.__file__).parent / "bin" / "spark-submit")

    def prepared(self, wanted: Wanted, folder: Path) -> tuple[list[str], dict[str, str]]:
        """The command and its environment; program and packages lie in the folder then. Raises CannotStartError."""
        jars = sorted(map(str, self.jars.glob("*.jar")))
        if not jars:
            raise CannotStartError(f"there are no jars for Spark in {self.jars}: run `cdc-lake setup`")
        for uri in wanted.jars:
            self._asked(uri, lambda bucket, key: self.s3.head_object(Bucket=bucket, Key=key))
        entry = self._fetched(wanted.entry, folder)
        packages = [self._fetched(uri, folder) for uri in wanted.py_files]
        scratch = folder / "scratch"
        scratch.mkdir(mode=0o700)
        settings = {**passed_on(wanted.settings), **self._own(), **_local_folders(scratch)}
        command = [str(self.submit)]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        if packages:
            command += ["--py-files", ",".join(map(str, packages))]
        return [*command, str(entry), *wanted.arguments], {
            **self._environment(jars),
            "SPARK_LOCAL_DIRS": str(scratch),  # Hudi and Python's workers know this only
        }

    def _own(self) -> dict[str, str]:
        s3a = "spark.hadoop.fs.s3a."
        return {
            "spark.master": "local[2]",
            "spark.submit.deployMode": "client",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.authenticate": "true",
            "spark.ui.enabled": "false",
            f"{s3a}endpoint": self.s3_endpoint,
            f"{s3a}path.style.access": "true",
            f"{s3a}connection.ssl.enabled": str(self.s3_endpoint.startswith("https")).lower(),
            **self.settings,
        }

    def _environment(self, jars: Sequence[str]) -> dict[str, str]:
        """Keys are in it and not in the command, which anybody can read; boto3 and S3A both look for them there."""
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("CDC_LAKE_")}
        return {
            **kept,
            "JAVA_HOME": self.java_home,
            "SPARK_HOME": str(self.submit.parents[1]),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DIST_CLASSPATH": os.pathsep.join(jars),
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL": self.aws_endpoint,
            "AWS_ENDPOINT_URL_S3": self.s3_endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def _fetched(self, uri: str, folder: Path) -> Path:
        target = folder / place(uri)[1].rpartition("/")[2]
        self._asked(uri, lambda bucket, key: self.s3.download_file(bucket, key, str(target)))
        return target

    def _asked(self, uri: str, call: Any) -> None:  # noqa: ANN401 - boto3's answers differ
        try:
            call(*place(uri))
        except (ClientError, BotoCoreError) as error:
            raise CannotStartError(f"{uri} can't be read: {error}") from error


def _local_folders(folder: Path) -> dict[str, str]:
    """Where a run keeps rows on disk while it works: not where every user may read them."""
    return {
        "spark.local.dir": str(folder),
        "spark.hadoop.hadoop.tmp.dir": str(folder / "hadoop"),
        "spark.hadoop.fs.s3a.buffer.dir": str(folder / "s3a"),
    }
