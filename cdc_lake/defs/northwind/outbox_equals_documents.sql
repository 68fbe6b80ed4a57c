-- Rows that only the outbox or only the view order_documents has. The outbox must equal the view at every commit;
-- datalake.refresh_cdc_events repairs differences.
WITH outbox AS (
    SELECT order_id, customer_id, order_date, required_date, shipped_date,
           order_items, products, customer, employee, shipper, shipment
    FROM datalake.cdc_events
)
(TABLE outbox EXCEPT ALL TABLE datalake.order_documents)
UNION ALL
(TABLE datalake.order_documents EXCEPT ALL TABLE outbox)
