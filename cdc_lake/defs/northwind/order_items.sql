-- The outbox stores an order's lines as one JSON array; this view has one row for each line.
-- The source's prices and discounts are `real`; the outbox writes them with two decimals.
SELECT
    customer_id,
    order_id,
    product_id,
    discount,
    quantity,
    unit_price,
    CAST(quantity * unit_price * (1 - discount) AS decimal(18, 4)) AS revenue
FROM (
    SELECT
        customer_id,
        order_id,
        CAST(json_extract_scalar(item, '$.product_id') AS integer) AS product_id,
        CAST(json_extract_scalar(item, '$.discount') AS decimal(12, 2)) AS discount,
        CAST(json_extract_scalar(item, '$.quantity') AS integer) AS quantity,
        CAST(json_extract_scalar(item, '$.unit_price') AS decimal(12, 2)) AS unit_price
    FROM cdc_events_current
    CROSS JOIN UNNEST(CAST(json_parse(order_items) AS array(json))) AS items (item)
) AS order_line
