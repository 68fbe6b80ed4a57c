-- Of the infrequent customers (fewer orders than the average), the one with the highest average revenue per order line.
WITH by_customer AS (
    SELECT
        customer_id,
        avg(revenue) AS average_revenue,
        count(DISTINCT order_id) AS orders,
        sum(revenue) AS revenue,
        count(*) AS order_lines
    FROM order_items
    GROUP BY customer_id
),
compared AS (
    SELECT *, avg(CAST(orders AS double)) OVER () AS average_orders FROM by_customer
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            ORDER BY CASE WHEN orders < average_orders THEN 0 ELSE 1 END, average_revenue DESC, customer_id
        ) AS place
    FROM compared
)
SELECT
    round(max(average_orders), 4) AS average_orders,
    sum(revenue) / sum(order_lines) AS average_revenue,
    max(CASE WHEN place = 1 AND orders < average_orders THEN customer_id END) AS top_customer,
    max(CASE WHEN place = 1 AND orders < average_orders THEN average_revenue END) AS top_customer_revenue,
    max(CASE WHEN place = 1 AND orders < average_orders THEN orders END) AS top_customer_orders
FROM ranked
