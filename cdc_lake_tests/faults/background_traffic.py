"""Order traffic (cdc_lake_tests/helpers/source_changes/order_traffic.py) in its own thread, during a block.

A commit whose answer was lost may have happened or not, so tests compare the lake with the source.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg2.extensions import make_dsn

from cdc_lake_tests.faults.northwind_stack import NorthwindStack
from cdc_lake_tests.helpers.source_changes.order_traffic import Counts, Traffic


class Background:
    """Traffic that runs until it is stopped."""

    def __init__(self, stack: NorthwindStack, rate: float, seed: int) -> None:
        login = stack.login()
        dsn = make_dsn(host=login.host, port=login.port, dbname=login.dbname, user=login.user, password=login.password)
        self._traffic = Traffic(dsn, seed, rate)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._error: Exception | None = None
        self._thread.start()

    @property
    def counts(self) -> Counts:
        """Return the counts so far."""
        return self._traffic.counts

    def stop(self) -> Counts:
        """Stop after the current transaction, and return the counts. Raises the traffic's own error."""
        self._stopped.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.counts

    def _run(self) -> None:
        try:
            self._traffic.run(self._stopped.is_set)
        except Exception as error:  # noqa: BLE001 - raised by stop()
            self._error = error


@contextmanager
def traffic(stack: NorthwindStack, rate: float, seed: int) -> Iterator[Background]:
    """Run traffic of `rate` changes a second during the block, or until it is stopped."""
    background = Background(stack, rate, seed)
    try:
        yield background
    finally:
        background.stop()
