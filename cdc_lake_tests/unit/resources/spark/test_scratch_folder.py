"""Spark's scratch folder: private, and removed when its process ends."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from resources.spark.scratch_folder import own_folder

IMPORTS = "import sys; from pathlib import Path; from resources.spark.scratch_folder import own_folder; "


def folder_of_another_process(parent: Path, then: str = "") -> Path:
    statement = f"folder = own_folder(Path({str(parent)!r})); (folder / 'shuffle').touch(); print(folder, flush=True); "
    code = IMPORTS + statement + then
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=not then)
    return Path(done.stdout.strip())


def test_the_folder_is_private(tmp_path: Path) -> None:
    parent = tmp_path / "spark"
    parent.mkdir(mode=0o755)
    folder = own_folder(parent)
    assert folder.parent == parent
    assert [stat.S_IMODE(path.stat().st_mode) for path in (parent, folder)] == [0o700, 0o700]


def test_the_folder_is_removed_when_its_process_ends(tmp_path: Path) -> None:
    folder = folder_of_another_process(tmp_path / "spark")
    assert folder.name
    assert list((tmp_path / "spark").iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_process(tmp_path: Path) -> None:
    killed = folder_of_another_process(tmp_path / "spark", "import os; os.kill(os.getpid(), 9)")
    mine = own_folder(tmp_path / "spark")
    assert (killed / "shuffle").parent != mine
    assert list((tmp_path / "spark").iterdir()) == [mine]
    assert mine.name.startswith(f"{os.getpid()}-")
    own_folder(tmp_path / "spark")
    assert mine.exists(), "its process is alive"
