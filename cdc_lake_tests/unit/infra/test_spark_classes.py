"""The file of Spark's classes: whose it is, and that nothing depends on it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.local import spark_classes


class Told:
    """Progress that is kept."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    def started(self, name: str, measure: Callable[[], int]) -> None:
        """See SetupProgress."""
        assert (name, measure()) == ("classes", 0)

    def finished(self, name: str, size: int, seconds: float) -> None:
        """See SetupProgress."""
        assert seconds >= 0
        self.lines.append((name, size))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Jars."""
    made = tmp_path / "jars"
    made.mkdir()
    (made / "hudi.jar").touch()
    return made


def test_another_java_or_other_jars_have_a_file_of_their_own(tmp_path: Path, folder: Path) -> None:
    first = spark_classes.archive(tmp_path / "java", folder)
    assert spark_classes.archive(tmp_path / "java", folder) == first
    assert spark_classes.archive(tmp_path / "another", folder) != first
    os.utime(folder / "hudi.jar", (1, 1))  # the same jar, installed anew
    again = spark_classes.archive(tmp_path / "java", folder)
    assert again != first
    (folder / "kafka.jar").touch()
    assert spark_classes.archive(tmp_path / "java", folder) not in (first, again)


def test_the_jvm_is_told_of_a_file_that_is_there(tmp_path: Path, folder: Path) -> None:
    assert spark_classes.java_options(tmp_path, folder) == ""
    found = spark_classes.archive(tmp_path, folder)
    found.parent.mkdir(parents=True)
    found.touch()
    assert f"-XX:SharedArchiveFile={found} " in spark_classes.java_options(tmp_path, folder)


def test_where_it_can_not_be_made_all_goes_on(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_classes, "java_home", lambda _: tmp_path)
    monkeypatch.setattr(spark_classes, "jars", lambda _: folder)
    monkeypatch.setattr(spark_classes, "_TRAINING", "infra.local.no_such_module")
    told = Told()
    warning = spark_classes.ensure(told)
    assert warning.startswith("warning: the classes that Spark loads could not be kept (")
    assert "returned non-zero exit status 1" in warning
    assert told.lines == [("classes", 0)]
    log = Path(warning.rpartition("see ")[2].partition(")")[0])
    assert "no_such_module" in log.read_text()
    assert spark_classes.java_options(tmp_path, folder) == ""
