"""The folder for Spark's temporary files: shuffles, spilled rows, blocks before their upload.

These files contain rows, and Spark makes them readable for every user of the machine.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import psutil


def own_folder(parent: Path) -> Path:
    """Create and return a folder for this process below `parent`; it is removed when the process exits.

    Only the process's user can access the two folders. First, the folders of killed processes are removed.
    """
    parent.mkdir(parents=True, exist_ok=True)
    parent.chmod(0o700)
    for folder in parent.iterdir():
        pid = folder.name.partition("-")[0]
        if not (pid.isdecimal() and psutil.pid_exists(int(pid))):
            shutil.rmtree(folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
    # Do not remove the parent: another process may create its folder there at the same moment.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
