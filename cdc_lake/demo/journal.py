"""Which steps of a demo are done, so that one that was cut off goes on where it stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from infra.local.errors import StackError
from infra.local.files import write_atomic


class DemoRunningError(StackError):
    """Another demo is at work on the same state folder."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Be the only demo that has this journal; the operating system drops the lock when its holder dies.

    Raises DemoRunningError at once where another one has it: two would undo each other's steps.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_suffix(".lock")).acquire(timeout=0):
            yield
    except Timeout:
        raise DemoRunningError(
            f"another `cdc-lake demo` is running on the state folder {path.parent}, and this one has changed nothing: "
            "wait for it or end it, or set CDC_LAKE_HOME to another folder"
        ) from None


class Journal:
    """Results and seconds of finished steps, kept in a JSON file."""

    def __init__(self, path: Path, resume: bool) -> None:
        self._path = path
        self._done: dict[str, dict[str, Any]] = {}
        if resume and path.exists():
            self._done = json.loads(path.read_text(encoding="utf-8"))
        elif not resume:
            path.unlink(missing_ok=True)  # what is cut off in its first step must not resume the demo before it

    def step(self, name: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - each step has a result of its own
        """The step's result (a JSON value): remembered, or made now and then remembered."""
        if name not in self._done:
            started = time.monotonic()
            result = work()
            self._done[name] = {"result": result, "seconds": round(time.monotonic() - started, 2)}
            self._save()
        return self._done[name]["result"]

    def seconds(self) -> dict[str, float]:
        """Seconds of each finished step, in the order they were done."""
        return {name: step["seconds"] for name, step in self._done.items()}

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path, json.dumps(self._done, indent=1))
