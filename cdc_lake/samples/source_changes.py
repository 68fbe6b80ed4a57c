"""The changes that the Northwind demo makes at the source: ship an order, insert another with its lines, and delete it.

Each function makes the change as an application would, and returns it, so that the caller can follow it downstream.
The functions work on the generated data and on data loaded from the original Northwind scripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from psycopg2.extensions import connection, cursor

from cdc_lake.samples.errors import LoadError

SHIPPED_LATE = date(1998, 6, 15)
ORDERED = date(1998, 5, 6)
REQUIRED = date(1998, 6, 3)
QUANTITIES = (10, 30, 2)
DISCOUNT = Decimal("0.15")


@dataclass(frozen=True)
class ShippedOrder:
    """An order whose shipped_date was set: one event."""

    order_id: int
    before: date | None
    shipped: date
    events: int = 1


@dataclass(frozen=True)
class OrderLine:
    """An inserted line."""

    product_id: int
    unit_price: Decimal
    quantity: int
    discount: Decimal


@dataclass(frozen=True)
class InsertedOrder:
    """An order and its lines, each inserted in a separate transaction: one event each."""

    order_id: int
    customer_id: str
    lines: tuple[OrderLine, ...]

    @property
    def events(self) -> int:
        """The number of outbox events: the first contains no items, and each later event contains one item more."""
        return 1 + len(self.lines)


@dataclass(frozen=True)
class DeletedOrder:
    """An order that was deleted with its lines: one delete event, which contains the lines."""

    order_id: int
    lines: int
    events: int = 1


def ship_order(conn: connection, order_id: int = 11077, shipped: date = SHIPPED_LATE) -> ShippedOrder:
    """Set the order's shipped_date in one transaction. Raises LoadError if the order does not exist."""
    with conn, conn.cursor() as cur:
        cur.execute("SELECT shipped_date FROM datalake.orders WHERE order_id = %s FOR UPDATE", (order_id,))
        row = cur.fetchone()
        if row is None:
            raise LoadError(
                f"Cannot ship order {order_id}: it is not in datalake.orders. Load the sample database first."
            )
        cur.execute("UPDATE datalake.orders SET shipped_date = %s WHERE order_id = %s", (shipped, order_id))
    return ShippedOrder(order_id, row[0], shipped)


def insert_order_with_lines(conn: connection, order_id: int = 11075, *, resume: bool = False) -> InsertedOrder:
    """Insert an order, then three lines, each in a separate transaction.

    Customer, employee and shipper are those of the latest order; the products are the first three. With `resume`, rows
    that an interrupted call has inserted are kept, and the others are inserted. Raises LoadError if the order exists
    (without `resume`) or the sample is not loaded.
    """
    with conn, conn.cursor() as cur:
        cur.execute("SELECT customer_id::text FROM datalake.orders WHERE order_id = %s", (order_id,))
        existing = cur.fetchone()
        if existing and not resume:
            raise LoadError(
                f"Cannot insert order {order_id}: it is in datalake.orders. Delete it, or load the sample again."
            )
        customer_id = str(existing[0]) if existing else _insert_order(cur, order_id)
        cur.execute(
            "SELECT product_id, round(unit_price::numeric, 2) FROM datalake.products ORDER BY product_id LIMIT %s",
            (len(QUANTITIES),),
        )
        lines = tuple(
            OrderLine(product_id, price, quantity, DISCOUNT)
            for (product_id, price), quantity in zip(cur.fetchall(), QUANTITIES, strict=True)
        )
    for line in lines:
        with conn, conn.cursor() as cur:
            cur.execute(
                "INSERT INTO datalake.order_details (order_id, product_id, unit_price, quantity, discount) "
                "VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (order_id, line.product_id, line.unit_price, line.quantity, line.discount),
            )
    return InsertedOrder(order_id, customer_id, lines)


def _insert_order(cur: cursor, order_id: int) -> str:
    cur.execute(
        """
        INSERT INTO datalake.orders (order_id, customer_id, employee_id, order_date, required_date, ship_via, freight,
                                     ship_name, ship_address, ship_city, ship_region, ship_postal_code, ship_country)
        SELECT %s, o.customer_id, o.employee_id, %s, %s, o.ship_via, 6.19,
               c.company_name, c.address, c.city, c.region, c.postal_code, c.country
          FROM datalake.orders o JOIN datalake.customers c ON c.customer_id = o.customer_id
         ORDER BY o.order_id DESC LIMIT 1
        RETURNING customer_id::text
        """,
        (order_id, ORDERED, REQUIRED),
    )
    row = cur.fetchone()
    if row is None:
        raise LoadError("Cannot insert an order: datalake.orders is empty. Load the sample database first.")
    return str(row[0])


def delete_order(conn: connection, order_id: int = 11075, *, resume: bool = False) -> DeletedOrder:
    """Delete the order and its lines in one statement, as a foreign key with ON DELETE CASCADE would.

    Raises LoadError if the order does not exist, except with `resume`: an interrupted call may have deleted it.
    """
    with conn, conn.cursor() as cur:
        cur.execute(
            """
            WITH lines AS (DELETE FROM datalake.order_details WHERE order_id = %(id)s RETURNING 1),
                 gone AS (DELETE FROM datalake.orders WHERE order_id = %(id)s RETURNING 1)
            SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM lines)
            """,
            {"id": order_id},
        )
        orders, lines = cur.fetchone() or (0, 0)
        if not orders and not resume:
            raise LoadError(f"Cannot delete order {order_id}: it is not in datalake.orders.")
    return DeletedOrder(order_id, lines)
