"""Uploads the code of jobs on EMR to S3: our packages, the program that spark-submit starts, and jars.

An object's name contains the hash of its content. So it is uploaded once and never changed, and a run keeps the code
that it was started with. The same packages result in the same archive. Python and the packages' requirements are
installed on the cluster (docs/decisions/0021-jobs-on-emr.md).
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
from resources.spark.emr.job_files import JobFiles

_EXCLUDED = ("__pycache__", "*.pyc")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date in the zip format
_READABLE = 0o644 << 16


@dataclass(frozen=True)
class Code:
    """URIs of the uploaded objects."""

    entry: str
    archive: str
    jars: tuple[str, ...]


class EmrCode(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The code and jars of the jobs."""

    root: str = Field(description="The folder with the packages.")
    packages: list[str] = Field(description="Folders and files below it that the jobs import.")
    entry: str = Field(description="The program that spark-submit starts, a file.")
    jars: str = Field(description="The folder of jars that the jobs need in addition to Spark's.")
    without: list[str] = Field(
        default=["hadoop-aws-*.jar", "aws-java-sdk-*.jar", "jmespath-*.jar", "ion-java-*.jar", "jackson-*.jar"],
        description="Patterns of jars to leave out because EMR has its own versions: S3A and its dependencies.",
    )
    more_jars: list[str] = Field(default=[], description="Paths of more jars, such as the IAM library for MSK.")

    def upload(self, files: JobFiles) -> Code:
        """Upload missing objects; return all URIs. Raises ResourceError if files are missing, and JobFiles' errors."""
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
            raise ResourceError(
                f"Cannot run jobs on EMR: the folder for Spark's jars ({self.jars or 'not set'}) contains no jars.",
                "Run `cdc-lake setup --aws`.",
            )
        kept = [jar for jar in found if not any(fnmatch(jar.name, pattern) for pattern in self.without)]
        return [*kept, *map(Path, self.more_jars)]


def archive(root: Path, packages: Sequence[str]) -> bytes:
    """Return an uncompressed zip of packages below a folder; its bytes depend on the files only, not on zlib's version.

    Raises ResourceError if a package has no file.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as packed:
        for path in sorted(each for package in packages for each in _files(root, package)):
            member = zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH)
            member.external_attr = _READABLE
            member.create_system = 3  # Unix, on every platform
            packed.writestr(member, path.read_bytes())
    return buffer.getvalue()


def _files(root: Path, package: str) -> Iterator[Path]:
    source = root / package
    found = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    if not found:
        raise ResourceError(f"Cannot pack the jobs' code: {source} contains no files.", "Install cdc-lake again.")
    for path in found:
        parts = path.relative_to(root).parts
        if not any(fnmatch(part, pattern) for part in parts for pattern in _EXCLUDED):
            yield path


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
