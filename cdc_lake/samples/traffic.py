"""Traffic: a made-up application that goes on writing orders, at a rate, whatever happens to the server.

What it does comes from a seed: inserts, updates and deletes; transactions of one statement and of many; savepoints
that are rolled back and released; transactions that are rolled back; orders deleted and inserted again; changed
primary keys; and one transaction that stays open while others come and go. Orders whose number ends in 0 are left
alone: whoever looks on can tell them from those that move.

Here: writing, and counting what was committed. Not here: whoever kills the server, and what becomes of the changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from psycopg2.extensions import cursor as Cursor  # noqa: N812
from tenacity import RetryError, Retrying, retry_if_exception_type, wait_fixed
from tenacity.stop import stop_base

from cdc_lake.samples.errors import LoadError

SETTLED, SLOW = 0, 9
"""Last digits of the orders that nobody touches, and of those that only the open transaction touches."""
_RECONNECT_SECONDS = 0.2
_CATCH_UP_SECONDS = 1.0
_SLOW_STEPS = 25
_NAMES = (None, "", "Zażółć & Søn", "l'été", "tab\there", 'quote "x"', "🚚 express")

_INSERT = """
insert into datalake.orders (order_id, customer_id, employee_id, order_date, ship_via, freight, ship_name)
select %(id)s, customer_id, %(employee)s, date '1998-05-06', %(shipper)s, %(freight)s, %(name)s
  from datalake.customers order by customer_id offset %(customer)s limit 1
    on conflict do nothing
"""
_ADD_LINE = """
insert into datalake.order_details (order_id, product_id, unit_price, quantity, discount)
select order_id, %(product)s, %(price)s, %(quantity)s, 0.05 from datalake.orders where order_id = %(id)s
    on conflict (order_id, product_id) do update set quantity = excluded.quantity
"""
_SHIP = """
update datalake.orders set shipped_date = date '1998-05-06' + %(days)s, freight = %(freight)s where order_id = %(id)s
"""
_COUNT = "update datalake.order_details set quantity = %(quantity)s where order_id = %(id)s"
_DROP_LINE = """
delete from datalake.order_details where (order_id, product_id) in
       (select order_id, product_id from datalake.order_details where order_id = %(id)s order by product_id limit 1)
"""
_DELETE = """
with lines as (delete from datalake.order_details where order_id = %(id)s)
delete from datalake.orders where order_id = %(id)s
"""
# An order without lines, since these refer to it.
_RENUMBER = """
update datalake.orders o set order_id = %(id)s where order_id = %(old)s
   and not exists (select from datalake.order_details d where d.order_id = o.order_id)
   and not exists (select from datalake.orders t where t.order_id = %(id)s)
"""


@dataclass
class Counts:
    """What a run did. A change is a statement; those that found no row are not counted."""

    transactions: int = 0
    """Committed for certain."""
    changes: int = 0
    """Changes of these."""
    rolled_back: int = 0
    """Transactions that it rolled back itself, or the server refused."""
    lost: int = 0
    """Transactions that the server ended before they were to be committed."""
    ambiguous: int = 0
    """Transactions whose commit was sent, and never answered: committed or not."""
    reconnects: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Committed changes a second."""
        return self.changes / self.seconds if self.seconds else 0.0


class Traffic:
    """Writes to a database that the Northwind sample was loaded into; `rate` is in changes a second."""

    def __init__(self, postgres_dsn: str, seed: int, rate: float) -> None:
        self.counts = Counts()
        self._dsn, self._rate = postgres_dsn, rate
        self._dice = Random(seed)  # noqa: S311 - made-up data
        # Several can write at once: the seed keeps their new orders apart.
        self._next = 100_000 + (seed % 1000) * 1_000_000
        self._orders: list[int] = []
        self._fast: Connection | None = None
        self._slow: Connection | None = None
        self._steps = self._slow_changes = 0

    def run(self, until: Callable[[], bool]) -> Counts:
        """Write until `until` says so; what was done, in all runs so far.

        Raises LoadError where the database is there and the sample is not.
        """
        started, done = time.monotonic(), self.counts.changes + self.counts.rolled_back
        due = started
        try:
            while not until() and self._connected(until):
                self._step()
                now = self.counts.changes + self.counts.rolled_back
                due, done = max(due + (now - done) / self._rate, time.monotonic() - _CATCH_UP_SECONDS), now
                time.sleep(max(0.0, due - time.monotonic()))
            self._end_slow()
        finally:
            for connection in (self._fast, self._slow):
                if connection is not None:
                    connection.close()
            self._fast = self._slow = None
            self.counts.seconds += time.monotonic() - started
        return self.counts

    def _step(self) -> None:
        """One transaction, and now and then a change in the one that stays open."""
        self._steps += 1
        if self._steps % _SLOW_STEPS == 0:
            self._end_slow()
        elif self._steps % 5 == 0:
            self._slow_step()
        kinds: Sequence[tuple[Callable[[Cursor], int], int]] = (
            (self._ship, 40), (self._count, 20), (self._order, 14), (self._line, 8), (self._drop_line, 4),
            (self._delete, 4), (self._again, 3), (self._savepoints, 5), (self._renumber, 2),
        )  # fmt: skip
        (work,) = self._dice.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
        self._transaction(work, commit=self._dice.random() > 0.04)

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
            self._failed(connection, committing)

    def _failed(self, connection: Connection, committing: bool) -> None:
        if not connection.closed:
            with suppress(psycopg2.Error):  # the server goes away right now: told below
                connection.rollback()
        if not connection.closed:
            self.counts.rolled_back += 1
        elif committing:
            self.counts.ambiguous += 1
        else:
            self.counts.lost += 1

    # What an application does. Each returns the number of statements that changed something.

    def _order(self, cursor: Cursor) -> int:
        """An order comes in, line by line."""
        number = self._new()
        return self._insert(cursor, number) + sum(self._add(cursor, number) for _ in range(self._dice.randint(0, 4)))

    def _insert(self, cursor: Cursor, number: int) -> int:
        dice = self._dice
        return _ran(
            cursor,
            _INSERT,
            id=number,
            employee=dice.randint(1, 9),
            shipper=dice.randint(1, 3),
            freight=dice.randint(1, 99_999) / 100,
            customer=dice.randrange(91),
            name=dice.choice(_NAMES),
        )

    def _add(self, cursor: Cursor, number: int) -> int:
        dice = self._dice
        price, quantity = dice.randint(100, 26_350) / 100, dice.randint(1, 120)
        return _ran(cursor, _ADD_LINE, id=number, product=dice.randint(1, 77), price=price, quantity=quantity)

    def _ship(self, cursor: Cursor) -> int:
        dice = self._dice
        return _ran(cursor, _SHIP, id=self._any(), days=dice.randint(0, 400), freight=dice.randint(1, 99_999) / 100)

    def _count(self, cursor: Cursor) -> int:
        return _ran(cursor, _COUNT, id=self._any(), quantity=self._dice.randint(1, 120))

    def _line(self, cursor: Cursor) -> int:
        return self._add(cursor, self._any())

    def _drop_line(self, cursor: Cursor) -> int:
        return _ran(cursor, _DROP_LINE, id=self._any())

    def _delete(self, cursor: Cursor) -> int:
        return _ran(cursor, _DELETE, id=self._any(own=True))

    def _again(self, cursor: Cursor) -> int:
        """Deleted, and inserted again under the same number."""
        number = self._any(own=True)
        return _ran(cursor, _DELETE, id=number) + self._insert(cursor, number) + self._add(cursor, number)

    def _renumber(self, cursor: Cursor) -> int:
        old, number = self._any(own=True), self._new()
        return _ran(cursor, _RENUMBER, old=old, id=number)

    def _savepoints(self, cursor: Cursor) -> int:
        """Subtransactions: one that is rolled back, one that is released, one inside of another."""
        changes = self._ship(cursor)
        cursor.execute("savepoint a")
        self._order(cursor)
        self._count(cursor)
        cursor.execute("rollback to savepoint a")
        changes += self._count(cursor)
        cursor.execute("savepoint b")
        changes += self._ship(cursor)
        cursor.execute("savepoint c")
        self._delete(cursor)
        cursor.execute("rollback to savepoint c")
        cursor.execute("release savepoint b")
        return changes + self._line(cursor)

    # The transaction that stays open.

    def _slow_step(self) -> None:
        if self._slow is None:
            return
        try:
            with self._slow.cursor() as cursor:
                number = 10_000 + self._dice.randint(25, 106) * 10 + SLOW
                self._slow_changes += _ran(cursor, _SHIP, id=number, days=self._dice.randint(0, 400), freight=1.0)
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            self._slow_changes = 0
            self._failed(self._slow, committing=False)

    def _end_slow(self) -> None:
        if self._slow is None or self._slow.closed:
            return
        changes, self._slow_changes = self._slow_changes, 0
        try:
            self._slow.commit()
            self.counts.transactions += 1
            self.counts.changes += changes
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            self._failed(self._slow, committing=True)

    # Numbers and connections.

    def _new(self) -> int:
        """A number that no order has had, and that does not end in a digit that is not ours."""
        self._next += 1
        while self._next % 10 in {SETTLED, SLOW}:
            self._next += 1
        self._orders.append(self._next)
        del self._orders[:-500]
        return self._next

    def _any(self, *, own: bool = False) -> int:
        """An order's number: one of its own, or one that the sample came with."""
        if self._orders and (own or self._dice.random() < 0.4):
            return self._dice.choice(self._orders)
        return self._new() if own else 10_000 + self._dice.randint(25, 106) * 10 + self._dice.randint(1, 8)

    def _connected(self, until: Callable[[], bool]) -> bool:
        """Open what is closed; False where `until` came first."""
        retrying = Retrying(
            retry=retry_if_exception_type(psycopg2.OperationalError),
            wait=wait_fixed(_RECONNECT_SECONDS),
            stop=_When(until),
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
                raise LoadError("There is no sample database to write to: load it with `cdc-lake load` first.")
        opened.rollback()
        return opened


class _When(stop_base):
    """Stops retrying when a condition holds."""

    def __init__(self, until: Callable[[], bool]) -> None:
        self._until = until

    def __call__(self, retry_state: object) -> bool:  # noqa: ARG002 - as tenacity asks
        return self._until()


def _ran(cursor: Cursor, statement: str, **values: object) -> int:
    """1 where the statement changed something, 0 where it found nothing."""
    cursor.execute(statement, values)
    return int(cursor.rowcount > 0)
