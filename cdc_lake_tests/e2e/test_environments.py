"""Northwind in an unusual environment: blanks in paths, another time zone, an ASCII locale, another user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials
from infra.folders import cache_folder

NOBODY = 65534
ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder with a blank in its name, which contains a cache with the jars of this machine's cache.

    What `up` adds to a cache is not copied, so that this user adds it again.
    """
    found = Path(tempfile.mkdtemp(prefix="cdc lake "))
    found.chmod(0o711)
    try:
        added = shutil.ignore_patterns("*.synced", "*.lock", "connect-plugin-path-shim*")
        shutil.copytree(cache_folder() / "jars", found / "cache" / "jars", copy_function=_link, ignore=added)
        (found / "home").mkdir()
        yield found
    finally:
        shutil.rmtree(found)


def _link(source: str, target: str) -> None:
    """Link a file, or copy it if the cache is on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.mark.timeout(900)
def test_a_run_passes_with_blanks_in_paths_another_zone_and_no_utf_8(folder: Path, count_trials: CountTrials) -> None:
    """Root runs it as another user."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    if user == NOBODY:
        if not _can_run(NOBODY):
            pytest.skip(f"the user with id {NOBODY} cannot run {sys.executable}, for example in a home folder")
        # Only the folders: the files are links to those of the cache.
        for each in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            os.chown(each, user, user)
        count_trials("stacks of another user than root", 1)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "CDC_LAKE_CACHE": str(folder / "cache"),
        "CDC_LAKE_HOME": str(folder / "state folder"),
        "TZ": "America/St_Johns",  # half an hour off the hour
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }

    def run(program: str, *args: str) -> subprocess.CompletedProcess[str]:
        identity: dict[str, Any] = {"user": user, "group": user, "extra_groups": []} if user == NOBODY else {}
        done = subprocess.run(
            [BIN / program, *args], env=environment, cwd=ROOT, capture_output=True, text=True, check=False, **identity
        )
        assert done.returncode == 0, f"{program} {args}: {done.stdout}\n{done.stderr}"
        return done

    try:
        run("cdc-lake", "up")
        environment["DAGSTER_HOME"] = str(folder / "state folder" / "dagster")
        run("cdc-lake", "load", "--yes")
        run("dagster", "asset", "materialize", "--select", 'group:"northwind"', "-m", "cdc_lake.definitions")
        in_lake = run("cdc-lake", "query", "SELECT count(*) AS n FROM order_items", "--format", "json").stdout
        assert json.loads(in_lake) == [{"n": 2152}]
        assert (folder / "state folder").stat().st_uid == user
    finally:
        run("cdc-lake", "down")


def _can_run(user: int) -> bool:
    """Return whether a user can read the checkout and its virtual environment."""
    with suppress(OSError):
        return (
            subprocess.run(
                [BIN / "cdc-lake", "--help"],
                user=user,
                group=user,
                extra_groups=[],
                cwd=ROOT,
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )
    return False
