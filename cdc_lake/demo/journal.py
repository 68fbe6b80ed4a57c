"""The journal of a demo: its finished steps, so that an interrupted demo can continue."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from infra.errors import StackError
from infra.files import PRIVATE, write_atomic


class DemoRunningError(StackError):
    """Another demo is running on the same state folder."""


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Lock the journal; the operating system releases the lock if the process dies.

    Raises DemoRunningError if another demo has the lock: two demos would undo each other's steps.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_suffix(".lock"), mode=PRIVATE).acquire(timeout=0):
            yield
    except Timeout:
        raise DemoRunningError(
            f"Cannot start the demo: another one is running on the state folder {path.parent}. Nothing was changed. "
            "Wait for it or stop it, or set CDC_LAKE_HOME to another folder."
        ) from None


class Journal:
    """Results and seconds of finished steps, kept in a JSON file."""

    def __init__(self, path: Path, resume: bool) -> None:
        self._path = path
        self._done: dict[str, dict[str, Any]] = {}
        if resume and path.exists():
            self._done = json.loads(path.read_text(encoding="utf-8"))
        elif not resume:
            path.unlink(missing_ok=True)  # a demo interrupted in its first step must not continue the previous one

    def step(self, name: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - each step has another type
        """Return the step's result (a JSON value): from the journal, or from `work`, then written to the journal."""
        if name not in self._done:
            started = time.monotonic()
            result = work()
            self._done[name] = {"result": result, "seconds": round(time.monotonic() - started, 2)}
            self._save()
        return self._done[name]["result"]

    def forget(self, name: str) -> None:
        """Remove a step, so that it is done again by the next run that resumes."""
        del self._done[name]
        self._save()

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each finished step, in the order of execution."""
        return {name: step["seconds"] for name, step in self._done.items()}

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path, json.dumps(self._done, indent=1))
