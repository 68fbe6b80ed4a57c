"""Spark's file of classes: each virtual environment has its own, and the message where it can't be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake_tests.unit.infra.artifacts.test_class_path import Told
from infra.local.artifacts import class_path, spark_classes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Jars."""
    made = tmp_path / "jars"
    made.mkdir()
    (made / "hudi.jar").touch()
    return made


def test_each_virtual_environment_has_its_own(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = spark_classes.spark_class_path(tmp_path / "java", folder)
    monkeypatch.setattr(spark_classes.sysconfig, "get_path", lambda _: str(tmp_path / "another"))
    other = spark_classes.spark_class_path(tmp_path / "java", folder)
    assert first.archive() != other.archive()
    assert first.folders[-1] == other.folders[-1] == folder


def test_what_a_session_is_told(tmp_path: Path, folder: Path) -> None:
    assert spark_classes.java_options(tmp_path, folder) == ""
    found = spark_classes.spark_class_path(tmp_path, folder).archive()
    found.parent.mkdir(parents=True)
    found.touch()
    assert spark_classes.java_options(tmp_path, folder).startswith(f"-XX:SharedArchiveFile={found} -Xlog")


def test_where_it_can_not_be_made_the_log_is_named(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_classes, "java_home", lambda _: tmp_path)
    monkeypatch.setattr(class_path, "has_classes", lambda _: True)
    monkeypatch.setattr(spark_classes, "jars", lambda _: folder)
    monkeypatch.setattr(spark_classes, "_TRAINING", "infra.local.no_such_module")
    warning = spark_classes.ensure(Told())
    assert warning.startswith("warning: the classes of Spark could not be kept (")
    assert "returned non-zero exit status 1" in warning
    log = Path(warning.rpartition("see ")[2].partition(")")[0])
    assert "no_such_module" in log.read_text()
