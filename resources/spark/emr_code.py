"""What a job on EMR runs: our packages, the program that spark-submit starts, and jars, in S3 by content.

An object's name has the hash of what it holds: it is uploaded once, never changed, and a run keeps the code that it was
started with. The archive is the same bytes wherever and whenever it is made.
Not here: Python and what our packages need, which the cluster has (docs/decisions/0021-jobs-on-emr.md).
"""

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import dagster as dg
from pydantic import Field

from resources.errors import ResourceError
from resources.spark.emr_job_files import JobFiles

_LEFT_OUT = ("__pycache__", "*.pyc")
_MADE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_READABLE = 0o644 << 16


@dataclass(frozen=True)
class Code:
    """Addresses of what was uploaded."""

    entry: str
    archive: str
    jars: tuple[str, ...]


class EmrCode(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Code and jars of the jobs."""

    root: str = Field(description="The folder that has the packages.")
    packages: list[str] = Field(description="Folders and files below it that the jobs import.")
    entry: str = Field(description="The program that spark-submit starts, a file.")
    jars: str = Field(description="The folder of jars that the jobs add to Spark's own, the same as LocalSpark's.")
    without: list[str] = Field(
        default=["hadoop-aws-*.jar", "aws-java-sdk-*.jar", "jmespath-*.jar", "ion-java-*.jar", "jackson-*.jar"],
        description="Names of those that EMR has itself, in its own versions: S3A and what it needs.",
    )
    more_jars: list[str] = Field(
        default=[], description="Further jars, files: what Kafka signs in to MSK with, and others."
    )

    def upload(self, files: JobFiles) -> Code:
        """Put what is not there yet. Raises ResourceError where there is nothing to put, and what JobFiles raises."""
        packed = archive(Path(self.root), self.packages)
        entry = Path(self.entry).read_bytes()
        names = f"code/{_hash(entry)}/{Path(self.entry).name}", f"code/{_hash(packed)}/code.zip"
        for name, body in zip(names, (entry, packed), strict=True):
            files.put_new(name, body)
        jars = []
        for jar in self._jars():
            with jar.open("rb") as opened:
                name = f"jars/{hashlib.file_digest(opened, 'sha256').hexdigest()[:32]}/{jar.name}"
            files.upload(name, jar)
            jars.append(files.uri(name))
        return Code(files.uri(names[0]), files.uri(names[1]), tuple(jars))

    def _jars(self) -> Sequence[Path]:
        found = sorted(Path(self.jars).glob("*.jar"))
        if not self.jars or not found:
            raise ResourceError(f"there are no jars for Spark in {self.jars or 'no folder'!r}.", "Fetch them first.")
        kept = [jar for jar in found if not any(fnmatch(jar.name, pattern) for pattern in self.without)]
        return [*kept, *map(Path, self.more_jars)]


def archive(root: Path, packages: Sequence[str]) -> bytes:
    """A zip of packages below a folder, not compressed: the same bytes for the same files, whatever the zlib.

    Raises ResourceError where a package has no file.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as packed:
        for path in sorted(each for package in packages for each in _files(root, package)):
            member = zipfile.ZipInfo(path.relative_to(root).as_posix(), _MADE)
            member.external_attr = _READABLE
            member.create_system = 3  # Unix, wherever it is made
            packed.writestr(member, path.read_bytes())
    return made.getvalue()


def _files(root: Path, package: str) -> Iterator[Path]:
    at = root / package
    found = [at] if at.is_file() else [path for path in at.rglob("*") if path.is_file()]
    if not found:
        raise ResourceError(f"there is nothing to pack in {at}.")
    for path in found:
        parts = path.relative_to(root).parts
        if not any(fnmatch(part, pattern) for part in parts for pattern in _LEFT_OUT):
            yield path


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
