"""Each engine writes its class archive when it ends, and uses it when it starts again."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from cdc_lake_tests.helpers.local_stack import running_stack, scratch_home
from infra.folders import CACHE_VARIABLE, cache_folder
from infra.local.stack.process import find

ENGINES = ("kafka", "connect", "s3", "trino")


def test_engines_write_and_use_their_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in cache_folder().iterdir():
        if each.is_dir() and each.name != "classes":
            (tmp_path / each.name).symlink_to(each)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with scratch_home() as home:
        with running_stack(home, ENGINES):
            pass
        archives = {each.name.partition("-")[0]: each for each in tmp_path.glob("classes/*.jsa")}
        assert set(archives) == set(ENGINES)
        with running_stack(home, ENGINES):
            for name, archive in archives.items():
                (main,) = (each.process for each in find(home, name) if each.main)
                assert archive in {Path(each.path) for each in psutil.Process(main.pid).memory_maps()}, name
