"""An application that writes orders at a given rate, and continues after the server was unreachable.

Some of its transactions are rolled back, and one stays open while others are committed. It counts what was committed.
The statements are in order_changes.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from psycopg2.extensions import cursor as Cursor  # noqa: N812
from tenacity import RetryError, Retrying, retry_if_exception_type, wait_fixed
from tenacity.stop import stop_base

from cdc_lake.samples.errors import LoadError
from cdc_lake_tests.helpers.source_changes.order_changes import OrderChanges

_RECONNECT_SECONDS = 0.2
_CATCH_UP_SECONDS = 30.0
"""After an outage, at most this many seconds of missed changes are written at full speed."""
_SLOW_STEPS = 25


@dataclass
class Counts:
    """Counts of a run. A change is a statement; statements that found no row are not counted."""

    transactions: int = 0
    """Transactions whose commit was confirmed."""
    changes: int = 0
    """Changes in these."""
    rolled_back: int = 0
    """Transactions that were rolled back on purpose."""
    refused: int = 0
    """Transactions that the server refused."""
    lost: int = 0
    """Transactions whose connection was lost before the commit."""
    ambiguous: int = 0
    """Transactions whose connection was lost during the commit: committed or not."""
    reconnects: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Committed changes a second."""
        return self.changes / self.seconds if self.seconds else 0.0


class Traffic:
    """Writes to a database that the Northwind sample was loaded into; `rate` is in committed changes a second."""

    def __init__(self, postgres_dsn: str, seed: int, rate: float) -> None:
        self.counts = Counts()
        self._dsn, self._rate = postgres_dsn, rate
        self._changes = OrderChanges(seed)
        self._fast: Connection | None = None
        self._slow: Connection | None = None
        self._steps = self._slow_changes = 0

    def run(self, until: Callable[[], bool]) -> Counts:
        """Write until `until` is true. Return the counts of all runs so far.

        Raises LoadError if the database has no sample.
        """
        started, done = time.monotonic(), self._done()
        next_step = started
        try:
            while not until() and self._connected(until):
                self._step()
                now = self._done()
                next_step, done = max(next_step + (now - done) / self._rate, time.monotonic() - _CATCH_UP_SECONDS), now
                time.sleep(max(0.0, next_step - time.monotonic()))
            self._end_slow()
        finally:
            for connection in (self._fast, self._slow):
                if connection is not None:
                    connection.close()
            self._fast = self._slow = None
            self.counts.seconds += time.monotonic() - started
        return self.counts

    def _done(self) -> int:
        """Return the changes and refused transactions so far; retries are counted too, so that they are paced."""
        return self.counts.changes + self.counts.refused

    def _step(self) -> None:
        """Run one transaction, and every few steps a change in the one that stays open."""
        self._steps += 1
        if self._steps % _SLOW_STEPS == 0:
            self._end_slow()
        elif self._steps % 5 == 0:
            self._slow_step()
        work, commit = self._changes.next()
        self._transaction(work, commit=commit)

    def _transaction(self, work: Callable[[Cursor], int], *, commit: bool) -> None:
        connection, committing = self._fast, False
        if connection is None:
            return
        try:
            with connection.cursor() as cursor:
                changes = work(cursor)
            if not commit:
                connection.rollback()
                self.counts.rolled_back += 1
                return
            committing = True
            connection.commit()
            self.counts.transactions += 1
            self.counts.changes += changes
        except (psycopg2.OperationalError, psycopg2.InterfaceError, psycopg2.IntegrityError):
            self._count_failure(connection, committing)

    def _count_failure(self, connection: Connection, committing: bool) -> None:
        if not connection.closed:
            with suppress(psycopg2.Error):  # the connection is already lost; counted below
                connection.rollback()
        if not connection.closed:
            self.counts.refused += 1
        elif committing:
            self.counts.ambiguous += 1
        else:
            self.counts.lost += 1

    def _slow_step(self) -> None:
        if self._slow is None:
            return
        try:
            with self._slow.cursor() as cursor:
                self._slow_changes += self._changes.slow(cursor)
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            self._slow_changes = 0
            self._count_failure(self._slow, committing=False)

    def _end_slow(self) -> None:
        if self._slow is None or self._slow.closed:
            return
        changes, self._slow_changes = self._slow_changes, 0
        try:
            self._slow.commit()
            self.counts.transactions += 1
            self.counts.changes += changes
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            self._count_failure(self._slow, committing=True)

    def _connected(self, until: Callable[[], bool]) -> bool:
        """Open the connections that are closed. Return False if `until` was true first."""
        retrying = Retrying(
            retry=retry_if_exception_type(psycopg2.OperationalError),
            wait=wait_fixed(_RECONNECT_SECONDS),
            stop=_StopWhen(until),
        )
        try:
            if self._fast is None or self._fast.closed:
                self.counts.reconnects += self._fast is not None
                self._fast = retrying(self._open)
            if self._slow is None or self._slow.closed:
                self._slow_changes = 0
                self._slow = retrying(self._open)
        except RetryError:
            return False
        return True

    def _open(self) -> Connection:
        opened = psycopg2.connect(
            self._dsn, connect_timeout=5, application_name="cdc-lake traffic", tcp_user_timeout=10_000
        )
        with opened.cursor() as cursor:
            cursor.execute("select to_regclass('datalake.order_details') is not null")
            if not (cursor.fetchone() or (False,))[0]:
                raise LoadError("Cannot write orders: the database has no sample. Run `cdc-lake load` first.")
        opened.rollback()
        return opened


class _StopWhen(stop_base):
    """Stops retrying when a condition is true."""

    def __init__(self, until: Callable[[], bool]) -> None:
        self._until = until

    def __call__(self, retry_state: object) -> bool:  # noqa: ARG002 - tenacity passes it
        return self._until()
