-- The revenue of the three largest customers, of the top 20 and of the rest.
WITH by_customer AS (
    SELECT customer_id, sum(revenue) AS revenue
    FROM order_items
    GROUP BY customer_id
),
ranked AS (
    SELECT customer_id, revenue, row_number() OVER (ORDER BY revenue DESC, customer_id) AS place
    FROM by_customer
),
totals AS (
    SELECT
        max(CASE WHEN place = 1 THEN customer_id END) AS first_customer,
        max(CASE WHEN place = 2 THEN customer_id END) AS second_customer,
        max(CASE WHEN place = 3 THEN customer_id END) AS third_customer,
        sum(CASE WHEN place <= 3 THEN revenue END) AS largest_revenue,
        sum(CASE WHEN place <= 20 THEN revenue END) AS top_revenue,
        count(CASE WHEN place <= 20 THEN 1 END) AS top_customers,
        count(CASE WHEN place > 20 THEN 1 END) AS rest_customers,
        sum(revenue) AS total
    FROM ranked
)
SELECT
    first_customer || coalesce(', ' || second_customer, '') || coalesce(' and ' || third_customer, '') AS largest,
    largest_revenue,
    round(CAST(largest_revenue AS double) / CAST(nullif(total, 0) AS double), 6) AS largest_share,
    top_customers,
    round(CAST(top_revenue AS double) / CAST(nullif(total, 0) AS double), 6) AS top_share,
    rest_customers,
    round(CAST(total - top_revenue AS double) / CAST(nullif(total, 0) AS double), 6) AS rest_share
FROM totals
