"""Installs the Python packages of a peer into the cache folder, separate from cdc-lake's packages."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from infra.folders import cache_folder


def installed(name: str, lock: Path) -> Path:
    """Return the folder of the peer's packages; install those of `lock` if it is missing.

    The folder's name contains a hash of the lock.
    """
    folder = cache_folder() / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        draft = folder.with_name(f"{folder.name}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        command = ["-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", str(draft)]
        subprocess.run([sys.executable, *command, "--require-hashes", "--requirement", str(lock)], check=True)
        draft.rename(folder)
    return folder
