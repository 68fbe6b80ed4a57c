"""The changes that the Northwind demo makes at the source: ship an order, insert another with its lines, and delete it.

Each function makes the change as an application would. The functions work on the generated data and on data loaded from
the original Northwind scripts.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from psycopg2.extensions import connection, cursor

from cdc_lake.samples.errors import LoadError

SHIPPED_LATE = date(1998, 6, 15)
ORDERED = date(1998, 5, 6)
REQUIRED = date(1998, 6, 3)
QUANTITIES = (10, 30, 2)
DISCOUNT = Decimal("0.15")


def ship_order(conn: connection, order_id: int = 11077, shipped: date = SHIPPED_LATE) -> None:
    """Set the order's shipped_date in one transaction: one event. Raises LoadError if the order does not exist."""
    with conn, conn.cursor() as cur:
        cur.execute("UPDATE datalake.orders SET shipped_date = %s WHERE order_id = %s", (shipped, order_id))
        if cur.rowcount == 0:
            raise LoadError(
                f"Cannot ship order {order_id}: it is not in datalake.orders. Load the sample database first."
            )


def insert_order_with_lines(conn: connection, order_id: int = 11075, *, resume: bool = False) -> None:
    """Insert an order, then three lines, each in a separate transaction: four events.

    Customer, employee and shipper are those of the latest order; the products are the first three. With `resume`, rows
    that an interrupted call has inserted are kept, and the others are inserted. Raises LoadError if the order exists
    (without `resume`) or there are too few products.
    """
    with conn, conn.cursor() as cur:
        cur.execute("SELECT 1 FROM datalake.orders WHERE order_id = %s", (order_id,))
        existing = cur.fetchone()
        if existing and not resume:
            raise LoadError(
                f"Cannot insert order {order_id}: it is in datalake.orders. Delete it, or load the sample again."
            )
        if not existing:
            _insert_order(cur, order_id)
        cur.execute(
            "SELECT product_id, round(unit_price::numeric, 2) FROM datalake.products ORDER BY product_id LIMIT %s",
            (len(QUANTITIES),),
        )
        products = cur.fetchall()
        if len(products) < len(QUANTITIES):
            raise LoadError(
                f"Cannot insert order {order_id} with {len(QUANTITIES)} lines: datalake.products has "
                f"{len(products)} rows. Load the sample database again."
            )
    for (product_id, unit_price), quantity in zip(products, QUANTITIES, strict=True):
        with conn, conn.cursor() as cur:
            cur.execute(
                "INSERT INTO datalake.order_details (order_id, product_id, unit_price, quantity, discount) "
                "VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (order_id, product_id, unit_price, quantity, DISCOUNT),
            )


def _insert_order(cur: cursor, order_id: int) -> None:
    cur.execute(
        """
        INSERT INTO datalake.orders (order_id, customer_id, employee_id, order_date, required_date, ship_via, freight,
                                     ship_name, ship_address, ship_city, ship_region, ship_postal_code, ship_country)
        SELECT %s, o.customer_id, o.employee_id, %s, %s, o.ship_via, 6.19,
               c.company_name, c.address, c.city, c.region, c.postal_code, c.country
          FROM datalake.orders o JOIN datalake.customers c ON c.customer_id = o.customer_id
         ORDER BY o.order_id DESC LIMIT 1
        """,
        (order_id, ORDERED, REQUIRED),
    )
    if cur.rowcount == 0:
        raise LoadError("Cannot insert an order: datalake.orders is empty. Load the sample database first.")


def delete_order(conn: connection, order_id: int = 11075, *, resume: bool = False) -> None:
    """Delete the order and its lines in one statement, as a foreign key with ON DELETE CASCADE would: one event.

    Raises LoadError if the order does not exist, except with `resume`: an interrupted call may have deleted it.
    """
    with conn, conn.cursor() as cur:
        cur.execute(
            """
            WITH lines AS (DELETE FROM datalake.order_details WHERE order_id = %(id)s)
            DELETE FROM datalake.orders WHERE order_id = %(id)s
            """,
            {"id": order_id},
        )
        if cur.rowcount == 0 and not resume:
            raise LoadError(f"Cannot delete order {order_id}: it is not in datalake.orders. Insert it first.")
