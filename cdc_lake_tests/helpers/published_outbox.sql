-- An outbox in the shape of the published data lake demo's (its data/sql/03_cdc_events.sql): a smallint key, a bpchar
-- customer, row triggers that rewrite the order's row and ignore deletes, a procedure that fills the table.

DROP TABLE IF EXISTS cdc_events;
DROP PUBLICATION IF EXISTS cdc_publication;

CREATE TABLE cdc_events (
    order_id        smallint NOT NULL PRIMARY KEY,
    customer_id     bpchar NOT NULL,
    order_date      date,
    required_date   date,
    shipped_date    date,
    order_items     jsonb,
    products        jsonb,
    customer        jsonb,
    employee        jsonb,
    shipper         jsonb,
    shipment        jsonb,
    updated_at      timestamptz
);

CREATE OR REPLACE FUNCTION order_events(one smallint) RETURNS SETOF cdc_events LANGUAGE sql AS $$
    SELECT o.order_id, o.customer_id, o.order_date, o.required_date, o.shipped_date,
           (SELECT jsonb_agg(to_jsonb(d) - 'order_id') FROM order_details d WHERE d.order_id = o.order_id),
           (SELECT jsonb_agg(to_jsonb(p) || to_jsonb(s) || to_jsonb(c))
              FROM order_details d JOIN products p USING (product_id)
              JOIN suppliers s USING (supplier_id) JOIN categories c USING (category_id)
             WHERE d.order_id = o.order_id),
           to_jsonb(cu),
           to_jsonb(e) || jsonb_build_object('territories', (
               SELECT jsonb_agg(to_jsonb(t)) FROM employee_territories et
                 JOIN (SELECT * FROM territories JOIN region USING (region_id)) AS t USING (territory_id)
                WHERE et.employee_id = e.employee_id)),
           to_jsonb(sh),
           jsonb_build_object('freight', o.freight, 'ship_name', o.ship_name, 'ship_country', o.ship_country),
           now()
      FROM orders o
      JOIN customers cu USING (customer_id)
      JOIN employees e USING (employee_id)
      JOIN shippers sh ON sh.shipper_id = o.ship_via
     WHERE o.order_id = coalesce(one, o.order_id)
       AND EXISTS (SELECT FROM order_details d WHERE d.order_id = o.order_id)
$$;

CREATE OR REPLACE FUNCTION fn_order_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        INSERT INTO cdc_events SELECT * FROM order_events(NEW.order_id)
        ON CONFLICT (order_id) DO UPDATE
           SET shipped_date = excluded.shipped_date, order_items = excluded.order_items,
               products = excluded.products, updated_at = excluded.updated_at;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER orders_event AFTER INSERT OR UPDATE OR DELETE ON orders
    FOR EACH ROW EXECUTE PROCEDURE fn_order_event();
CREATE TRIGGER order_details_event AFTER INSERT OR UPDATE OR DELETE ON order_details
    FOR EACH ROW EXECUTE PROCEDURE fn_order_event();

CREATE OR REPLACE PROCEDURE usp_fill_events() LANGUAGE sql AS $$
    INSERT INTO cdc_events SELECT * FROM order_events(NULL)
$$;

CREATE PUBLICATION cdc_publication FOR TABLE cdc_events;

CALL usp_fill_events();
