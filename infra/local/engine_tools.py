"""Runs a helper program of an engine (initdb, Kafka's storage tool) during the preparation of a component.

The program's environment contains the same marks as a component's process (process.py), so if the command that runs it
is killed, the next `up` finds the program and ends it.
"""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import psutil

from infra.errors import StackError
from infra.local.stack.component import Launch
from infra.local.stack.process import end, spawn


def run_tool(launch: Launch, component: str, home: Path, seconds: float = 120) -> str:
    """Run the program and return its output. Raises StackError with its last lines if it fails or times out."""
    with tempfile.TemporaryDirectory(prefix="cdc-lake-tool-") as folder:
        log = Path(folder) / "output"
        process = spawn(launch, component, home, log)
        try:
            code = process.wait(timeout=seconds)
        except psutil.TimeoutExpired:
            end([process], signal.SIGTERM, 5)
            code = None
        text = log.read_text(encoding="utf-8", errors="replace")
    if code != 0:
        what = f"ended with code {code}" if code is not None else f"did not end within {seconds:.0f} s"
        tail = "\n".join(text.strip().splitlines()[-15:])
        raise StackError(
            f"Cannot prepare {component}: {Path(launch.argv[0]).name} {what}:\n{tail}\nCorrect the cause, then start "
            "the stack again."
        )
    return text
