"""Which steps of a demo are done, so that one that was cut off goes on where it stopped.

Here: the file. Not here: the steps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps(self._done, indent=1), encoding="utf-8")
        partial.replace(self._path)
