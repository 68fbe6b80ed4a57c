-- The customer with the highest average revenue an order line among those who order seldom.
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
averaged AS (
    SELECT *, avg(CAST(orders AS double)) OVER () AS average_orders FROM by_customer
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            ORDER BY CASE WHEN orders < average_orders THEN 0 ELSE 1 END, average_revenue DESC, customer_id
        ) AS place
    FROM averaged
)
SELECT
    round(max(average_orders), 4) AS average_orders,
    sum(revenue) / sum(order_lines) AS average_revenue,
    max(CASE WHEN place = 1 AND orders < average_orders THEN customer_id END) AS dearest,
    max(CASE WHEN place = 1 AND orders < average_orders THEN average_revenue END) AS dearest_revenue,
    max(CASE WHEN place = 1 AND orders < average_orders THEN orders END) AS dearest_orders
FROM ranked
