SELECT
    sum(revenue) AS revenue,
    count(DISTINCT order_id) AS orders,
    count(DISTINCT customer_id) AS customers,
    count(*) AS order_lines
FROM order_items
