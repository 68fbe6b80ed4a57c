-- An order without an event, or an event without an order.
SELECT order_id, o.order_id IS NULL AS order_missing, e.order_id IS NULL AS event_missing
FROM datalake.orders AS o
FULL JOIN datalake.cdc_events AS e USING (order_id)
WHERE o.order_id IS NULL OR e.order_id IS NULL
