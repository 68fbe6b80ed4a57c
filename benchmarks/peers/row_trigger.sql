-- An outbox by row triggers, which rewrite the order's whole document for each row that changes.
CREATE FUNCTION datalake.row_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO datalake.cdc_events
    SELECT d.*, clock_timestamp() FROM datalake.order_documents d WHERE d.order_id = NEW.order_id
    ON CONFLICT (order_id) DO UPDATE
       SET (customer_id, order_date, required_date, shipped_date, order_items, products,
            customer, employee, shipper, shipment, updated_at)
         = (excluded.customer_id, excluded.order_date, excluded.required_date, excluded.shipped_date,
            excluded.order_items, excluded.products, excluded.customer, excluded.employee,
            excluded.shipper, excluded.shipment, excluded.updated_at);
    RETURN NULL;
END
$$;

CREATE TRIGGER row_outbox AFTER INSERT OR UPDATE ON datalake.orders
    FOR EACH ROW EXECUTE FUNCTION datalake.row_to_outbox();
CREATE TRIGGER row_outbox AFTER INSERT OR UPDATE ON datalake.order_details
    FOR EACH ROW EXECUTE FUNCTION datalake.row_to_outbox();
