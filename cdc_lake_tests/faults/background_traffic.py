"""Order traffic (cdc_lake_tests/order_traffic.py) in a thread of its own, for the length of a block.

A commit whose answer was lost may have happened or not: tests compare the lake with the source.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg2.extensions import make_dsn

from cdc_lake_tests.faults.fault_environment import Bench
from cdc_lake_tests.order_traffic import Counts, Traffic


class Background:
    """Traffic that goes on until it is stopped."""

    def __init__(self, bench: Bench, rate: float, seed: int) -> None:
        login = bench.login()
        dsn = make_dsn(host=login.host, port=login.port, dbname=login.dbname, user=login.user, password=login.password)
        self._traffic = Traffic(dsn, seed, rate)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._error: Exception | None = None
        self._thread.start()

    @property
    def counts(self) -> Counts:
        """What it has done so far."""
        return self._traffic.counts

    def stop(self) -> Counts:
        """End after the transaction that is under way; what was done. Raises what ended it before."""
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.counts

    def _run(self) -> None:
        try:
            self._traffic.run(self._over.is_set)
        except Exception as error:  # noqa: BLE001 - raised by stop()
            self._error = error


@contextmanager
def traffic(bench: Bench, rate: float, seed: int) -> Iterator[Background]:
    """So many changes a second, for the length of the block or until it is stopped."""
    made = Background(bench, rate, seed)
    try:
        yield made
    finally:
        made.stop()
