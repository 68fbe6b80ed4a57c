"""Spark's class archive: which one a session uses or writes."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from infra.artifacts import spark_classes

COMPLETE = bytes.fromhex("a8ab0bf0") + b"classes"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of jars, with a Java beside it."""
    made = tmp_path / "jars"
    made.mkdir()
    (made / "hudi.jar").touch()
    monkeypatch.setattr(spark_classes, "has_classes", lambda _: True)
    return made


def test_each_virtual_environment_java_and_set_of_jars_has_its_own(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = spark_classes.archive(tmp_path, folder)
    assert spark_classes.archive(tmp_path, folder) == first
    os.utime(folder / "hudi.jar", (1, 1))  # the same jar, installed again
    second = spark_classes.archive(tmp_path, folder)
    (folder / "kafka.jar").touch()
    third = spark_classes.archive(tmp_path, folder)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "another"))
    assert len({first, second, third, spark_classes.archive(tmp_path, folder)}) == 4


@pytest.mark.parametrize("content", [None, b"", bytes(4096)], ids=["missing", "empty", "killed while it was written"])
def test_a_session_writes_the_archive_that_is_not_complete(tmp_path: Path, folder: Path, content: bytes | None) -> None:
    path = spark_classes.archive(tmp_path, folder)
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert spark_classes.java_options(tmp_path, folder).startswith(f'"-XX:ArchiveClassesAtExit={path}" -Xlog')
    path.write_bytes(COMPLETE)
    assert spark_classes.java_options(tmp_path, folder).startswith(f'"-XX:SharedArchiveFile={path}" -Xlog')


def test_outdated_archives_of_the_same_environment_are_deleted(tmp_path: Path, folder: Path) -> None:
    old = spark_classes.archive(tmp_path, folder)
    old.parent.mkdir(parents=True, exist_ok=True)
    other = old.with_name(f"spark-{'0' * 12}-{'0' * 12}.jsa")
    for each in (old, other):
        each.write_bytes(COMPLETE)
    (folder / "new.jar").touch()
    spark_classes.java_options(tmp_path, folder)
    assert (old.exists(), other.exists()) == (False, True)


def test_a_java_without_an_archive_of_its_own_classes_is_passed_over(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_classes, "has_classes", lambda _: False)
    assert spark_classes.java_options(tmp_path, folder) == ""
