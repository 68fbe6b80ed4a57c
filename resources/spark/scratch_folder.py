"""The folder for what Spark keeps on disk while it works: shuffles, spilled rows, blocks on their way to the store.

These files hold rows, and Spark makes them readable for every user of the machine.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import psutil


def own_folder(parent: Path) -> Path:
    """Make a folder for this process below `parent`, which is closed to other users. Removed at the process's end.

    Folders of processes that were killed are removed first.
    """
    parent.mkdir(parents=True, exist_ok=True)
    parent.chmod(0o700)
    for left in parent.iterdir():
        pid = left.name.partition("-")[0]
        if not (pid.isdecimal() and psutil.pid_exists(int(pid))):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
    # The parent stays: another process may be about to make its folder there.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
