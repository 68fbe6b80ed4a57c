-- Averages per order line. A customer with fewer orders than the average is infrequent.
WITH by_customer AS (
    SELECT
        customer_id,
        avg(CAST(quantity AS double)) AS average_quantity,
        avg(revenue) AS average_revenue,
        count(DISTINCT order_id) AS orders,
        sum(revenue) AS revenue
    FROM order_items
    GROUP BY customer_id
)
SELECT
    customer_id,
    round(average_quantity, 4) AS average_quantity,
    average_revenue,
    orders,
    round(revenue / orders, 4) AS revenue_per_order,
    orders < avg(CAST(orders AS double)) OVER () AS infrequent
FROM by_customer
ORDER BY average_revenue DESC, customer_id
