-- Customers by revenue, largest first. The running share includes all customers up to that row.
WITH by_customer AS (
    SELECT customer_id, sum(revenue) AS revenue, count(DISTINCT order_id) AS orders
    FROM order_items
    GROUP BY customer_id
),
ranked AS (
    SELECT
        customer_id,
        revenue,
        orders,
        sum(revenue) OVER () AS total,
        sum(revenue) OVER (ORDER BY revenue DESC, customer_id ROWS UNBOUNDED PRECEDING) AS running
    FROM by_customer
)
SELECT
    customer_id,
    revenue,
    round(CAST(revenue AS double) / CAST(nullif(total, 0) AS double), 6) AS share,
    round(CAST(running AS double) / CAST(nullif(total, 0) AS double), 6) AS running_share,
    orders
FROM ranked
ORDER BY revenue DESC, customer_id
