"""Runs programs of the virtual environment, and measures them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.measures.usage import Usage
from infra.local.stack.process import end

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
STOP_SECONDS = 120


def run(*command: str) -> None:
    """Run a program without its output. Raises CalledProcessError if it fails."""
    subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def running(*command: str, log: Path = Path(os.devnull)) -> Iterator[psutil.Popen]:
    """Start a program with its output in `log`. After the block, interrupt it and its children, and wait for it.

    Raises RuntimeError after the block if the program has ended before.
    """
    with log.open("wb") as output:
        process = psutil.Popen(
            [str(BIN / command[0]), *command[1:]], cwd=ROOT, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
        if (code := process.poll()) is not None:
            raise RuntimeError(f"Cannot measure: `{' '.join(command)}` ended with {code}. Its output is in {log}.")
    finally:
        end([process], signal.SIGINT, STOP_SECONDS)


def timed(*command: str) -> Usage:
    """Run a program, and return its wall and CPU seconds with those of the processes that it waited for."""
    started, before = time.monotonic(), _cpu_of_children()
    run(*command)
    return Usage(time.monotonic() - started, _cpu_of_children() - before)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
