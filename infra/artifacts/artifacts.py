"""Fetches the jars and plugins of the local stack and of the Spark jobs into the cache folder, module by module.

A module is one pom under connectors/maven and a lock file with the SHA-256 sums of its files. The name of the module's
cache folder contains a hash of both files: after a change of either file the module is fetched again, and an older
checkout keeps using its own folder.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from filelock import FileLock

from infra.artifacts import jar_locks, java, maven
from infra.artifacts.unpack import unpack, unpack_folders
from infra.errors import ArtifactsMissing, StackError
from infra.folders import cache_folder, tree_bytes

POMS = Path(__file__).parents[2] / "connectors" / "maven"
MODULES = ("kafka", "debezium", "avro-converter", "s3proxy", "spark", "trino")
"""The modules of every local stack."""
REGISTRY_MODULES = ("apicurio",)
"""The modules of the schema registry, which only pipelines with Avro need."""
AWS_MODULES = ("debezium", "avro-converter", "spark", "msk-iam")
"""The modules whose jars are uploaded to AWS, for the Connect plugin and the Spark jobs."""
CONNECT_3_7 = "connect-3.7"
"""A Kafka Connect 3.7 worker. Only the test that runs the plugin's zip on this worker uses and fetches it."""
PEERS = "peers"
"""Iceberg and Delta, which only the benchmarks use and fetch."""
HOODIE_STREAMER = "hoodie-streamer"
"""HoodieStreamer, which only a benchmark uses and fetches."""
ALL_MODULES = (*MODULES, *REGISTRY_MODULES, "msk-iam", CONNECT_3_7, PEERS, HOODIE_STREAMER)
JAVAS = tuple(java.PACKAGED)
AVRO_CONVERTER = "apicurio-avro-converter"
"""The converter's plugin folder. It is created in the module's folder, which is an entry of plugin.path."""
TRINO_FOLDERS = ("lib", "plugin/hive", "plugin/hudi")


class SetupProgress(Protocol):
    """Receives the progress of `ensure`; sizes in bytes, times in seconds."""

    def started(self, name: str, measure: Callable[[], int]) -> None:
        """The fetch of an artifact has started; `measure` returns the size so far."""

    def finished(self, name: str, size: int, seconds: float) -> None:
        """The artifact is in the cache."""


def pom_of(module: str) -> Path:
    """Return the pom of the module. Raises StackError if there is no such module."""
    if module not in ALL_MODULES:
        raise StackError(f"Cannot fetch jars: there is no module {module!r}. Choose from {', '.join(ALL_MODULES)}.")
    return POMS / module / "pom.xml"


def folder_of(module: str) -> Path:
    """Return the cache folder of the module, whether it exists or not."""
    pom = pom_of(module)
    digest = hashlib.sha256(pom.read_bytes() + pom.with_name(jar_locks.NAME).read_bytes()).hexdigest()[:12]
    return cache_folder() / "jars" / f"{module}-{digest}"


def jars(module: str) -> Path:
    """Return the cache folder with the module's files.

    It contains jars; for debezium and avro-converter, plugin folders; for trino, lib/ and plugin/; for apicurio, the
    program and lib/. Raises ArtifactsMissing if the module is not in the cache.
    """
    folder = folder_of(module)
    if not folder.is_dir():
        if module in (*MODULES, *REGISTRY_MODULES):
            advice = "Run `cdc-lake setup`."
        elif module in AWS_MODULES:
            advice = "Run `cdc-lake setup --aws`."
        else:
            advice = "The benchmark or test that uses them downloads them: run it."
        raise ArtifactsMissing(f"Cannot use the jars of {module}: they are not in {folder}. {advice}")
    return folder


def missing(modules: Iterable[str] = MODULES) -> list[str]:
    """Return the modules that are not in the cache."""
    return [module for module in modules if not folder_of(module).is_dir()]


def ensure(modules: Iterable[str], progress: SetupProgress) -> None:
    """Fetch the modules that are not in the cache. Raises a StackError that names the coordinate it cannot fetch.

    After a failure, the local Maven repository is kept so that the next call resumes. It is deleted after a success, or
    if a file does not have the SHA-256 sum in the module's lock.
    """
    with _locked():
        wanted = missing(modules)
        for module in wanted:
            _fetch(module, progress)
        if wanted:
            shutil.rmtree(cache_folder() / "m2", ignore_errors=True)


def ensure_java(majors: Iterable[int], progress: SetupProgress) -> None:
    """Install the Java versions that are not on this machine, and create missing CDS archives. Raises StackError."""
    with _locked():
        for major in majors:
            if java.find_java(major) is None:
                folder = cache_folder() / f"jdk-{major}.tmp"
                with _progress_of(f"java {major}", partial(tree_bytes, folder), progress) as done:
                    done(tree_bytes(java.install_java(major)))
            java.dump_classes(major)


def _fetch(module: str, progress: SetupProgress) -> None:
    folder, repository = folder_of(module), cache_folder() / "m2"
    draft = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    initial = tree_bytes(repository)
    with _progress_of(module, lambda: tree_bytes(draft) + tree_bytes(repository) - initial, progress) as done:
        maven.copy_dependencies(pom_of(module), draft, repository, _log(module))
        try:
            jar_locks.verify(draft, pom_of(module))
        except StackError:
            for rejected in (draft, repository):
                shutil.rmtree(rejected, ignore_errors=True)
            raise
        if finish := FINISH.get(module):
            finish(draft)
        draft.rename(folder)
        done(tree_bytes(folder))


def _log(module: str) -> Path:
    return cache_folder() / "logs" / f"setup-{module}.log"


def _tarball(folder: Path) -> Path:
    [archive] = folder.glob("*.tar.gz")  # a module that consists of an archive has no other file
    return archive


def _finish_archive(folder: Path) -> None:
    archive = _tarball(folder)
    unpack(archive, folder)
    archive.unlink()


def _finish_converter(folder: Path) -> None:
    files = list(folder.iterdir())
    plugin = folder / AVRO_CONVERTER
    plugin.mkdir()
    for file in files:
        file.rename(plugin / file.name)


def _finish_trino(folder: Path) -> None:
    archive = _tarball(folder)
    unpack_folders(archive, folder, TRINO_FOLDERS)
    archive.unlink()


def _finish_streamer(folder: Path) -> None:
    """Replace HoodieStreamer's jar by one in which some packages are renamed (see the pom)."""
    built = folder / "target"
    maven.build_jar(pom_of(HOODIE_STREAMER), built, cache_folder() / "m2", _log(HOODIE_STREAMER))
    [jar] = folder.glob("hudi-utilities_*.jar")
    (built / "jars-hoodie-streamer-1.jar").replace(jar)
    shutil.rmtree(built)


FINISH: Mapping[str, Callable[[Path], None]] = {
    "debezium": _finish_archive,
    "avro-converter": _finish_converter,
    "trino": _finish_trino,
    "apicurio": _finish_archive,
    HOODIE_STREAMER: _finish_streamer,
}


@contextmanager
def _progress_of(name: str, measure: Callable[[], int], progress: SetupProgress) -> Iterator[Callable[[int], None]]:
    began = time.monotonic()
    progress.started(name, measure)
    yield lambda size: progress.finished(name, size, time.monotonic() - began)


@contextmanager
def _locked() -> Iterator[None]:
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(
            f"Cannot create the cache folder {cache}: {error.strerror}. Set CDC_LAKE_CACHE to another folder."
        ) from error
    with FileLock(cache / "setup.lock"):
        yield


__all__ = [
    "AWS_MODULES",
    "CONNECT_3_7",
    "HOODIE_STREAMER",
    "JAVAS",
    "MODULES",
    "PEERS",
    "REGISTRY_MODULES",
    "ArtifactsMissing",
    "ensure",
    "ensure_java",
    "folder_of",
    "jars",
    "missing",
]
