"""A thread that repeats one stage of one table, and keeps what it did until that is reported."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from cdc_lake.pipeline.automation.run_requests import backoff

T = TypeVar("T")
_log = logging.getLogger(__name__)


class StageLoop(Generic[T]):
    """Calls `step` until it is stopped: each time that wake() is called, and every `pause_seconds`.

    `step` returns what it did, or None if there was nothing to do. A failed step is repeated after a growing pause, and
    stops no other loop. At most as many loops as `at_once` admits run their steps at the same time. `done` is called
    after each step that did something.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], T | None],
        at_once: threading.Semaphore,
        pause_seconds: float,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._step, self._at_once, self._pause, self._done = step, at_once, pause_seconds, done
        self._wake, self._stop, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._working = False
        self._batches: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name)

    @property
    def busy(self) -> bool:
        """Whether a step runs or is about to, in which there is something to do."""
        return self._working or self._wake.is_set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """End the pause: there is something to do. A pause after a failed step continues."""
        self._wake.set()

    def stop(self) -> None:
        """Let the loop end after one more step, which does what is left to do."""
        self._stop.set()
        self._wake.set()

    def join(self) -> None:
        """Wait for the end of the loop."""
        self._thread.join()

    def unreported(self) -> tuple[list[T], Exception | None]:
        """Return what the steps did and reported() does not cover, and the newest step's error if it failed."""
        with self._lock:
            return list(self._batches), self._error

    def reported(self, batches: int) -> None:
        """Forget the oldest batches: they are reported."""
        with self._lock:
            del self._batches[:batches]

    def _run(self) -> None:
        failures = 0
        while True:
            last = self._stop.is_set()
            self._working = self._wake.is_set()
            self._wake.clear()
            try:
                with self._at_once:
                    batch = self._step()
            except Exception as error:  # noqa: BLE001 - it is logged, and reported as the asset's observation
                failures += 1
                wait = backoff(failures)
                _log.exception("%s failed; next attempt in %s s", self.name, wait)
                self._note(None, error)
                if last or self._stop.wait(wait):
                    return
                continue
            failures = 0
            self._note(batch, None)
            self._working = False
            if batch is not None:
                self._done()
            if last:
                return
            self._wake.wait(self._pause)

    def _note(self, batch: T | None, error: Exception | None) -> None:
        with self._lock:
            self._error = error
            if batch is not None:
                self._batches.append(batch)
