"""Reads the end of a log and follows it as it grows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from infra.errors import StackError


def read_log(log: Path, count: int, *, follow: bool = False) -> Iterator[str]:
    """Yield the last `count` lines with their line ends; with `follow`, also yield appended text, endlessly.

    Following continues if the log is truncated or replaced. Raises a StackError that lists the existing logs if there
    is no such log.
    """
    if not log.exists():
        others = ", ".join(sorted(path.stem for path in log.parent.glob("*.log"))) or "none"
        raise StackError(
            f"Cannot show the log {log}: it does not exist. Choose one of the components with a log: {others}."
        )
    with log.open(encoding="utf-8", errors="replace") as file:
        yield from deque(file, maxlen=count)
        position = file.tell()
    while follow:
        if log.exists():
            size = log.stat().st_size
            if size < position:
                position = 0
            if size > position:
                with log.open(encoding="utf-8", errors="replace") as file:
                    file.seek(position)
                    yield file.read()
                    position = file.tell()
        time.sleep(0.25)  # polls, because there is no event when a file grows
