"""A thread that repeats one stage of one table, and keeps its results until they are reported."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline.automation.run_requests import CONTINUOUS_LONGEST_SECONDS, backoff
from resources.errors import ResourceError

T = TypeVar("T")
_log = logging.getLogger(__name__)


class StageLoop(Generic[T]):
    """Calls `step` until the loop is stopped: after each call of wake(), and every `pause_seconds`.

    `step` returns its result (a batch), or None if there was nothing to do. A failed step is repeated after a growing
    pause, and does not stop other loops. The semaphore `step_limit` limits the number of loops that run a step at the
    same time. `done` is called after each step that returned a batch.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], T | None],
        step_limit: threading.Semaphore,
        pause_seconds: float,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._step, self._step_limit, self._pause, self._done = step, step_limit, pause_seconds, done
        self._wake, self._stop, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._working = False
        self._batches: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name)

    @property
    def busy(self) -> bool:
        """Whether the loop was woken and the next step has not ended; also true in the pause after it failed."""
        return self._working or self._wake.is_set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """End the pause, because there is something to do. A pause after a failed step does not end."""
        self._wake.set()

    def stop(self) -> None:
        """End the loop after one more step, which does the remaining work; in the pause after a failure, at once."""
        self._stop.set()
        self._wake.set()

    def join(self) -> None:
        """Wait for the end of the loop, if it was started."""
        if self._thread.ident is not None:
            self._thread.join()

    def unreported(self) -> tuple[list[T], Exception | None]:
        """Return the batches that are not reported yet, and the newest step's error if it failed."""
        with self._lock:
            return list(self._batches), self._error

    def reported(self, batches: int) -> None:
        """Remove this number of the oldest batches, because they are reported."""
        with self._lock:
            del self._batches[:batches]

    def _run(self) -> None:
        failures = 0
        while True:
            last = self._stop.is_set()
            self._working = self._wake.is_set()
            self._wake.clear()
            try:
                with self._step_limit:
                    batch = self._step()
            except Exception as error:  # noqa: BLE001 - it is logged, and reported as the asset's observation
                failures += 1
                wait = backoff(failures, CONTINUOUS_LONGEST_SECONDS)
                if isinstance(error, ContractError | ResourceError):
                    _log.warning("%s failed: %s Next attempt in %s s.", self.name, error.user_message, wait)
                else:
                    _log.exception("%s failed; next attempt in %s s", self.name, wait)
                self._store(None, error)
                if last or self._stop.wait(wait):
                    return
                continue
            failures = 0
            self._store(batch, None)
            self._working = False
            if batch is not None:
                self._done()
            if last:
                return
            self._wake.wait(self._pause)

    def _store(self, batch: T | None, error: Exception | None) -> None:
        with self._lock:
            self._error = error
            if batch is not None:
                self._batches.append(batch)
