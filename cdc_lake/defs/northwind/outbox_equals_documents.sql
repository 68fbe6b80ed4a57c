-- Outbox rows that differ from what the source's tables say now, either way round. `order_documents` is the view
-- that the outbox must equal after every statement; datalake.refresh_cdc_events repairs what this finds.
WITH outbox AS (
    SELECT order_id, customer_id, order_date, required_date, shipped_date,
           order_items, products, customer, employee, shipper, shipment
    FROM datalake.cdc_events
)
(TABLE outbox EXCEPT ALL TABLE datalake.order_documents)
UNION ALL
(TABLE datalake.order_documents EXCEPT ALL TABLE outbox)
