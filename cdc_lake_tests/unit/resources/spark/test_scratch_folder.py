"""Spark's folder for rows on disk: closed to others, and nothing of it is left."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from resources.spark.scratch_folder import own_folder

MAKE = "import sys; from pathlib import Path; from resources.spark.scratch_folder import own_folder; "


def made_by_another_process(parent: Path, then: str = "") -> Path:
    made = f"folder = own_folder(Path({str(parent)!r})); (folder / 'shuffle').touch(); print(folder, flush=True); "
    code = MAKE + made + then
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=not then)
    return Path(done.stdout.strip())


def test_it_is_closed_to_other_users(tmp_path: Path) -> None:
    parent = tmp_path / "spark"
    parent.mkdir(mode=0o755)
    folder = own_folder(parent)
    assert folder.parent == parent
    assert [stat.S_IMODE(path.stat().st_mode) for path in (parent, folder)] == [0o700, 0o700]


def test_it_goes_with_its_process(tmp_path: Path) -> None:
    folder = made_by_another_process(tmp_path / "spark")
    assert folder.name
    assert list((tmp_path / "spark").iterdir()) == []


def test_that_of_a_killed_process_goes_with_the_next_one(tmp_path: Path) -> None:
    killed = made_by_another_process(tmp_path / "spark", "import os; os.kill(os.getpid(), 9)")
    mine = own_folder(tmp_path / "spark")
    assert (killed / "shuffle").parent != mine
    assert list((tmp_path / "spark").iterdir()) == [mine]
    assert mine.name.startswith(f"{os.getpid()}-")
    own_folder(tmp_path / "spark")
    assert mine.exists(), "its process lives"
