"""LocalSpark: warm start and the folder for temporary files."""

from __future__ import annotations

import shutil
import stat
import threading
from pathlib import Path

import pytest

from resources.errors import ResourceError
from resources.object_store import ObjectStore
from resources.spark.local import LocalSpark, _Process


def test_a_failed_warm_start_is_raised_by_session(tmp_path: Path) -> None:
    spark = LocalSpark(
        java_home="/none", jars=str(tmp_path), properties=[], store=ObjectStore(bucket="none"), hint="Run setup."
    )
    spark.warm()
    for thread in threading.enumerate():
        if thread.name == "spark-warming":
            thread.join()
    with pytest.raises(ResourceError, match=rf"folder {tmp_path} contains no jars\. Run setup\."):
        spark.session()
    spark.stop()


def test_a_session_without_a_folder_of_jars_is_rejected() -> None:
    spark = LocalSpark(java_home="/none", jars="", properties=[], store=ObjectStore(bucket="none"), hint="Run setup.")
    with pytest.raises(ResourceError, match=r"no folder with jars is configured\. Run setup\."):
        spark.session()


def test_a_deleted_scratch_folder_is_recreated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Process, "scratch", None)
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    parent = tmp_path / "stack" / "spark"
    spark = LocalSpark(java_home="/none", jars="", properties=[], store=ObjectStore(bucket="none"), scratch=str(parent))
    folder = spark._scratch()
    assert folder is not None
    shutil.rmtree(parent)
    assert spark._scratch() == folder
    assert [stat.S_IMODE(path.stat().st_mode) for path in (parent, folder, folder / "s3a")] == [0o700] * 3
