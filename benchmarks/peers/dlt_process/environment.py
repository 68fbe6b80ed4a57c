"""Runs dlt's program with dlt's own packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers import separate_packages

PROGRAM = Path(__file__).with_name("load.py")


def packages() -> Path:
    """Return the folder of dlt's packages; install them if it is missing."""
    return separate_packages.installed("dlt", Path(__file__).with_name("requirements.lock"))


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
