-- The query of order_items on Northwind's own tables, without the outbox: the check compares the totals of both.
-- A `real` is cast to float8 first, as in the outbox: a direct cast to decimal keeps only six digits.
SELECT
    o.customer_id::text AS customer_id,
    o.order_id,
    d.product_id,
    d.discount::float8::decimal(12, 2) AS discount,
    d.quantity,
    d.unit_price::float8::decimal(12, 2) AS unit_price,
    (d.quantity * d.unit_price::float8::decimal(12, 2) * (1 - d.discount::float8::decimal(12, 2)))::decimal(18, 4) AS revenue
FROM datalake.orders AS o
JOIN datalake.order_details AS d USING (order_id)
