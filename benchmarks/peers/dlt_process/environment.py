"""Installs dlt with its packages into the cache folder, apart from cdc-lake's, and runs its program there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.folders import cache_folder

LOCK = Path(__file__).with_name("requirements.lock")
PROGRAM = Path(__file__).with_name("load.py")


def packages() -> Path:
    """Return the folder of dlt's packages; install them if it is missing. The folder's name depends on the lock."""
    folder = cache_folder() / f"dlt-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        draft = folder.with_name(f"{folder.name}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        command = ["-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", str(draft)]
        subprocess.run([sys.executable, *command, "--require-hashes", "--requirement", str(LOCK)], check=True)
        draft.rename(folder)
    return folder


def run(settings: Mapping[str, Any], variables: Mapping[str, str]) -> Mapping[str, int]:
    """Run dlt once with these settings and environment variables; return the Delta table's totals.

    Raises RuntimeError with the program's error messages.
    """
    own = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM)],
        env={**own, **variables, "PYTHONPATH": str(packages()), "DLT_SETTINGS": json.dumps(settings)},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Cannot measure dlt: its process ended with {done.returncode}.\n{done.stderr[-4000:]}")
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found
