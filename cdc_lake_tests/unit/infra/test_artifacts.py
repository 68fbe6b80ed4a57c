"""The cache of jars: hashing, atomic folders, what Maven's failures mean."""

# ruff: noqa: ARG002 - stand-ins take the arguments of what they stand in for

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.local import artifacts, maven
from infra.local.cache import cache_folder, tree_bytes
from infra.local.errors import ArtifactsMissing, StackError


class Quiet:
    """Progress that is remembered."""

    def __init__(self) -> None:
        self.finished_names: list[str] = []

    def started(self, name: str, measure: Callable[[], int]) -> None:
        assert measure() == 0

    def finished(self, name: str, size: int, seconds: float) -> None:
        self.finished_names.append(name)


def copy_one_jar(_pom: Path, into: Path, repository: Path, _log: Path) -> None:
    """Stands in for Maven."""
    repository.mkdir(parents=True, exist_ok=True)
    (into / "some-1.0.jar").write_bytes(b"jar")


def test_missing_jars_say_what_to_run() -> None:
    with pytest.raises(ArtifactsMissing, match=r"kafka.*run `cdc-lake setup`"):
        artifacts.jars("kafka")
    with pytest.raises(ArtifactsMissing, match=r"msk-iam.*run `cdc-lake setup --aws`"):
        artifacts.jars("msk-iam")


def test_the_folder_is_named_by_the_poms_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = artifacts.folder_of("kafka")
    assert re.fullmatch(r"kafka-[0-9a-f]{12}", before.name)
    pom = tmp_path / "kafka" / "pom.xml"
    pom.parent.mkdir()
    pom.write_text("<project/>")
    monkeypatch.setattr(artifacts, "POMS", tmp_path)
    assert artifacts.folder_of("kafka") != before


def test_every_module_has_a_pom() -> None:
    modules = {*artifacts.MODULES, *artifacts.AWS_MODULES, artifacts.CONNECT_3_7}
    assert all(artifacts.pom_of(module).is_file() for module in modules)
    named = re.findall(r"<module>maven/(.+)</module>", (artifacts.POMS.parent / "pom.xml").read_text())
    assert set(named) == modules == {path.name for path in artifacts.POMS.iterdir()}
    with pytest.raises(StackError, match="no module 'flink'"):
        artifacts.pom_of("flink")


def test_ensure_fetches_once_and_removes_mavens_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "copy_dependencies", copy_one_jar)
    progress = Quiet()
    artifacts.ensure(["kafka", "spark"], progress)
    artifacts.ensure(["kafka", "spark"], progress)
    assert progress.finished_names == ["kafka", "spark"]
    assert (artifacts.jars("kafka") / "some-1.0.jar").exists()
    assert not (cache_folder() / "m2").exists()
    assert artifacts.missing(["kafka", "trino"]) == ["trino"]


def test_a_failure_leaves_no_folder_that_looks_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(pom: Path, into: Path, repository: Path, log: Path) -> None:
        copy_one_jar(pom, into, repository, log)
        raise StackError("cut off")

    monkeypatch.setattr(maven, "copy_dependencies", fail)
    with pytest.raises(StackError, match="cut off"):
        artifacts.ensure(["kafka"], Quiet())
    with pytest.raises(ArtifactsMissing):
        artifacts.jars("kafka")
    assert (cache_folder() / "m2").exists(), "what Maven has already is kept for the next try"
    monkeypatch.setattr(maven, "copy_dependencies", copy_one_jar)
    artifacts.ensure(["kafka"], Quiet())


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "[ERROR] Could not find artifact org.apache.kafka:connect-runtime:jar:4.4.0 in central",
            r"kafka: org\.apache\.kafka:connect-runtime:jar:4\.4\.0 is not in any Maven repository",
        ),
        (
            "[ERROR] The following artifacts could not be resolved: io.trino:trino-server:tar.gz:999 (absent): x",
            r"io\.trino:trino-server:tar\.gz:999 is not in any",
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


def test_without_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match=r"Maven .* is not on PATH"):
        artifacts.ensure(["kafka"], Quiet())


def test_hard_links_count_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert tree_bytes(tmp_path) == 5
    assert tree_bytes(tmp_path / "none") == 0
