"""A dashboard for QuickSight, as tests put it there: Northwind's in small."""

from __future__ import annotations

from resources.quicksight_visuals import Board, Category, Column, Measure, NumberFormat, Pie, RowSet, Scatter

ROWS = RowSet(
    "SELECT customer_id, order_id, quantity, unit_price FROM datalake.order_items",
    (
        Column("customer_id", "STRING"),
        Column("order_id", "INTEGER"),
        Column("quantity", "INTEGER"),
        Column("unit_price", "DECIMAL"),
        Column("revenue", "DECIMAL", "{quantity} * {unit_price}"),
    ),
)
GIVEN = {"customer_id": "varchar", "order_id": "integer", "quantity": "integer", "unit_price": "decimal"}
"""What the SQL gives: Trino's raw types."""
BY = Category("customer_id", "Customer")
PIE = Pie("shares", "Revenue by customer", BY, Measure("revenue", "SUM", "Revenue", NumberFormat("$")), slices=10)
SCATTER = Scatter(
    "habits",
    "Quantity against revenue",
    BY,
    x=Measure("quantity", "AVERAGE", "Average quantity", NumberFormat(places=1)),
    y=Measure("revenue", "AVERAGE", "Average revenue", NumberFormat("$", 2)),
    size=Measure("order_id", "DISTINCT_COUNT", "Orders"),
)
BOARD = Board("shop-sales", "Sales", ROWS, (PIE, SCATTER))
