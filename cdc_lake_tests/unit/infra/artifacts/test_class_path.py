"""An engine's file of classes: whose it is, how it is kept, and that nothing depends on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from infra.local.artifacts.class_path import ClassPath, keep
from infra.local.errors import StackError
from infra.local.jvm import java_command


class Told:
    """Progress that is kept."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int]] = []

    def started(self, name: str, measure: Callable[[], int]) -> None:
        """See SetupProgress."""
        self.begun.append((name, measure()))

    def finished(self, name: str, size: int, seconds: float) -> None:
        """See SetupProgress."""
        assert seconds >= 0
        self.ended.append((name, size))


@pytest.fixture
def path(tmp_path: Path) -> ClassPath:
    """An engine with one jar."""
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "engine.jar").touch()
    own = tmp_path / "java" / "lib" / "server" / "classes.jsa"
    own.parent.mkdir(parents=True)
    own.touch()
    return ClassPath("engine", tmp_path / "java", (folder,))


def write(drafts: Mapping[ClassPath, Path]) -> None:
    """What JVMs do as they end."""
    for path, draft in drafts.items():
        draft.write_text(path.engine)


def test_another_java_or_other_jars_have_a_file_of_their_own(path: ClassPath, tmp_path: Path) -> None:
    first = path.archive()
    assert path.archive() == first
    assert ClassPath("engine", tmp_path / "another", path.folders).archive() != first
    assert ClassPath("other", path.java, path.folders).archive() != first
    (jar,) = path.folders[0].glob("*.jar")
    os.utime(jar, (1, 1))  # the same jar, installed anew
    again = path.archive()
    assert again != first
    jar.with_name("kafka.jar").touch()
    assert path.archive() not in (first, again)


def test_the_jvm_is_told_of_a_file_that_is_there(path: ClassPath) -> None:
    java = str(path.java / "bin" / "java")
    without = java_command(path, "Main", ("argument",), "1g")
    assert without[0] == java
    assert without[-3:] == (f"{path.folders[0]}/*", "Main", "argument")
    assert keep([path], write, "an engine", Told()) == ""
    option = f"-XX:SharedArchiveFile={path.archive()}"
    assert java_command(path, "Main", ("argument",), "1g") == (java, option, *path.options()[1:], *without[1:])


def test_only_what_is_missing_is_made(path: ClassPath) -> None:
    asked: list[set[str]] = []

    def train(drafts: Mapping[ClassPath, Path]) -> None:
        asked.append({each.engine for each in drafts})
        write(drafts)

    other = ClassPath("other", path.java, path.folders)
    told = Told()
    for wanted in ([path], [path], [path, other]):
        assert keep(wanted, train, "engines", told) == ""
    assert asked == [{"engine"}, {"other"}]
    assert told.begun == [("classes of engines", 0)] * 2
    assert told.ended == [("classes of engines", len("engine")), ("classes of engines", len("other"))]


def test_what_fits_nothing_any_more_is_removed(path: ClassPath) -> None:
    other = ClassPath("engine2", path.java, path.folders)
    keep([path, other], write, "engines", Told())
    old = path.archive()
    (path.folders[0] / "new.jar").touch()
    keep([path], write, "engines", Told())
    assert path.archive().is_file()
    assert not old.exists()
    kept = {each.name.partition("-")[0] for each in old.parent.glob("*.jsa")}
    assert kept == {"engine", "engine2"}, "another engine's was removed"


def test_another_checkouts_jars_are_no_reason_to_remove_anything(path: ClassPath, tmp_path: Path) -> None:
    other = ClassPath(path.engine, path.java, (tmp_path / "other jars",))
    other.folders[0].mkdir()
    for each in (path, other):
        assert keep([each], write, "engines", Told()) == ""
    assert path.archive().is_file()
    assert other.archive().is_file()


def test_a_java_without_an_archive_of_its_own_is_passed_over(path: ClassPath, tmp_path: Path) -> None:
    assert keep([ClassPath("engine", tmp_path / "linked", path.folders)], refuse, "engines", Told()) == ""


def refuse(drafts: Mapping[ClassPath, Path]) -> None:
    """An engine that did not come up; another one has written by then."""
    for draft in drafts.values():
        draft.touch()
    raise StackError("kafka ended while it was starting")


def forget(_drafts: Mapping[ClassPath, Path]) -> None:
    """A Java that has no archives."""


@pytest.mark.parametrize(("train", "said"), [(refuse, "kafka ended"), (forget, "the JVM of engine wrote none")])
def test_where_it_can_not_be_made_all_goes_on(
    path: ClassPath, train: Callable[[Mapping[ClassPath, Path]], None], said: str
) -> None:
    told = Told()
    warning = keep([path], train, "engines", told)
    assert warning.startswith("warning: the classes of engines could not be kept (")
    assert said in warning
    assert told.ended == [("classes of engines", 0)]
    assert list(path.archive().parent.glob("*.tmp")) == []
    assert path.options() == ()
    assert keep([path], write, "engines", Told()) == "", "the next setup does not try again"
