"""Reads the end of a log and follows it as it grows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from infra.local.errors import StackError


def last_lines(log: Path, count: int) -> list[str]:
    """Return the last `count` lines. Raises StackError that lists the existing logs if there is no such log."""
    if not log.exists():
        others = ", ".join(sorted(path.stem for path in log.parent.glob("*.log"))) or "none"
        raise StackError(f"there is no log {log}: the components with a log are: {others}")
    with log.open(encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n") for line in deque(file, maxlen=count)]


def follow_log(log: Path) -> Iterator[str]:
    """Yield what is appended to the log from now on, without end; a log that is truncated or replaced is followed
    too."""
    position = log.stat().st_size
    while True:
        if log.exists():
            size = log.stat().st_size
            if size < position:
                position = 0
            if size > position:
                with log.open(encoding="utf-8", errors="replace") as file:
                    file.seek(position)
                    yield file.read(size - position)
                    position = file.tell()
        time.sleep(0.25)  # a file does not report that it grew
