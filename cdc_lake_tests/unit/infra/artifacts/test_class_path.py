"""The options with which an engine's JVM keeps its class archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.artifacts.class_path import ClassPath
from infra.local.jvm import java_command


@pytest.fixture
def path(tmp_path: Path) -> ClassPath:
    """Return the class path of an engine whose Java has an archive of its own classes."""
    own = tmp_path / "java" / "lib" / "server" / "classes.jsa"
    own.parent.mkdir(parents=True)
    own.touch()
    return ClassPath("engine", tmp_path / "java", (tmp_path / "jars",))


def archive(path: ClassPath) -> Path:
    """Return the archive that the options name."""
    (option,) = (each for each in path.options() if "ArchiveFile" in each)
    return Path(option.partition("=")[2])


def test_each_engine_java_and_folder_has_its_own_archive(path: ClassPath, tmp_path: Path) -> None:
    other_java = tmp_path / "other"
    other_java.symlink_to(path.java)
    assert archive(ClassPath("engine", other_java, path.folders)) == archive(path), "a link is the same Java"
    others = [ClassPath("other", path.java, path.folders), ClassPath("engine", path.java, (tmp_path / "other jars",))]
    assert len({archive(each) for each in (path, *others)}) == 3
    assert archive(path).parent.is_dir()


def test_an_engine_keeps_its_archive_and_a_tool_does_not_touch_it(path: ClassPath) -> None:
    tool = java_command(path, "Main", ("argument",), "1g", tool=True)
    java = str(path.java / "bin" / "java")
    assert tool[0] == java
    assert tool[-3:] == (f"{path.folders[0]}/*", "Main", "argument")
    assert java_command(path, "Main", ("argument",), "1g") == (java, *path.options(), *tool[1:])
    assert path.options()[0] == "-XX:+AutoCreateSharedArchive"


def test_a_java_without_an_archive_of_its_own_classes_gets_no_option(path: ClassPath, tmp_path: Path) -> None:
    assert ClassPath("engine", tmp_path / "linked", path.folders).options() == ()
