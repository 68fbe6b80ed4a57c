-- The dataset's question asked of Northwind's own tables, past the outbox: what order_items must add up to.
SELECT
    o.customer_id::text AS customer_id,
    o.order_id,
    d.product_id,
    d.discount::decimal(6, 2) AS discount,
    d.quantity,
    d.unit_price::decimal(6, 2) AS unit_price,
    (d.quantity * d.unit_price::decimal(6, 2) * (1 - d.discount::decimal(6, 2)))::decimal(18, 4) AS revenue
FROM datalake.orders AS o
JOIN datalake.order_details AS d USING (order_id)
