"""Random changes to the orders of the Northwind sample, from a seed: one transaction at a time.

Inserts, updates and deletes; transactions of one statement and of many; savepoints that are rolled back and released;
orders deleted and inserted again; changed primary keys. Orders whose number ends in 0 are never changed.
order_traffic.py has the connections, the commits and the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - psycopg2 names its class in lower case

SETTLED, SLOW = 0, 9
"""Last digits of the orders that never change, and of those that only the long open transaction changes."""
_NAMES = (None, "", "Zażółć & Søn", "l'été", "tab\there", 'quote "x"', "🚚 express")

_INSERT = """
insert into datalake.orders (order_id, customer_id, employee_id, order_date, ship_via, freight, ship_name)
select %(id)s, customer_id, %(employee)s, date '1998-05-06', %(shipper)s, %(freight)s, %(name)s
  from datalake.customers order by customer_id offset %(customer)s limit 1
    on conflict do nothing
"""
_WRITE_AT_ONCE = "set constraints all immediate"
"""Each statement then writes the outbox, so that the WAL contains open and rolled back work too."""
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


class OrderChanges:
    """Changes to the orders of the Northwind sample; each method returns how many statements changed something."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)
        # Several can write at once: their seeds keep their new order numbers distinct.
        self._next = 100_000 + (seed % 1000) * 1_000_000
        self._orders: list[int] = []

    def next(self) -> tuple[Callable[[Cursor], int], bool]:
        """Return the work of the next transaction and whether to commit it: one in 25 is not committed."""
        kinds: Sequence[tuple[Callable[[Cursor], int], int]] = (
            (self._ship, 40), (self._count, 20), (self._order, 14), (self._line, 8), (self._drop_line, 4),
            (self._delete, 4), (self._again, 3), (self._savepoints, 5), (self._renumber, 2),
        )  # fmt: skip
        (work,) = self._dice.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
        return work, self._dice.random() > 0.04

    def slow(self, cursor: Cursor) -> int:
        """Run a statement of the transaction that stays open, on an order that no other transaction changes."""
        number = 10_000 + self._dice.randint(25, 106) * 10 + SLOW
        cursor.execute(_WRITE_AT_ONCE)
        return _ran(cursor, _SHIP, id=number, days=self._dice.randint(0, 400), freight=1.0)

    def _order(self, cursor: Cursor) -> int:
        """Insert an order, line by line."""
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
        """Delete an order, and insert it again under the same number."""
        number = self._any(own=True)
        return _ran(cursor, _DELETE, id=number) + self._insert(cursor, number) + self._add(cursor, number)

    def _renumber(self, cursor: Cursor) -> int:
        old, number = self._any(own=True), self._new()
        return _ran(cursor, _RENUMBER, old=old, id=number)

    def _savepoints(self, cursor: Cursor) -> int:
        """Use savepoints: one that is rolled back, one that is released, one inside another."""
        cursor.execute(_WRITE_AT_ONCE)
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

    def _new(self) -> int:
        """Return a number that no order has had, and that does not end in a reserved digit."""
        self._next += 1
        while self._next % 10 in {SETTLED, SLOW}:
            self._next += 1
        self._orders.append(self._next)
        del self._orders[:-500]
        return self._next

    def _any(self, *, own: bool = False) -> int:
        """Return an order's number: one that was inserted here, or one of the sample."""
        if self._orders and (own or self._dice.random() < 0.4):
            return self._dice.choice(self._orders)
        return self._new() if own else 10_000 + self._dice.randint(25, 106) * 10 + self._dice.randint(1, 8)


def _ran(cursor: Cursor, statement: str, **values: object) -> int:
    """Run a statement. Return 1 if it changed something, else 0."""
    cursor.execute(statement, values)
    return int(cursor.rowcount > 0)
