-- The outbox: one row an order, with everything about it as documents, for the change stream to carry.
-- It works on the tables of schema.sql and on the original Northwind scripts (smallint ids, bpchar keys).
--
-- The rule that everything below keeps: cdc_events equals the view order_documents, after every statement.
-- What it costs, and what it does not promise under concurrency: docs/decisions/0002-outbox-triggers.md.

CREATE TABLE datalake.cdc_events (
    order_id        integer PRIMARY KEY,
    customer_id     text,
    order_date      date,
    required_date   date,
    shipped_date    date,
    order_items     jsonb NOT NULL,
    products        jsonb NOT NULL,
    customer        jsonb,
    employee        jsonb,
    shipper         jsonb,
    shipment        jsonb NOT NULL,
    updated_at      timestamptz NOT NULL
) WITH (fillfactor = 70);  -- room on the page: no indexed column ever changes, so updates can stay on it

-- Documents grow past the size from which PostgreSQL stores values out of line; with the default identity
-- an update that leaves such a value alone, and every delete, would reach the stream without it.
ALTER TABLE datalake.cdc_events REPLICA IDENTITY FULL;

-- Only columns that describe; what changes by the hour (stock, list prices) or is bulky (photo, notes)
-- stays out, so that changing it rewrites nothing here. A `real` is read through numeric, which leaves its
-- binary noise behind, and rounded to two decimals: 9.80, 0.15. Not decimal(6,2): an order line that costs
-- 10,000 must not fail because of its outbox row.
CREATE VIEW datalake.order_documents AS
SELECT o.order_id,  -- not cast: a cast would keep a smallint key's index from being used
       o.customer_id::text AS customer_id,
       o.order_date,
       o.required_date,
       o.shipped_date,
       coalesce(lines.items, '[]') AS order_items,
       coalesce(lines.products, '[]') AS products,
       (SELECT jsonb_build_object(
                   'customer_id', c.customer_id::text, 'company_name', c.company_name,
                   'contact_name', c.contact_name, 'contact_title', c.contact_title,
                   'address', c.address, 'city', c.city, 'region', c.region,
                   'postal_code', c.postal_code, 'country', c.country, 'phone', c.phone)
          FROM datalake.customers c
         WHERE c.customer_id = o.customer_id) AS customer,
       (SELECT jsonb_build_object(
                   'employee_id', e.employee_id, 'last_name', e.last_name, 'first_name', e.first_name,
                   'title', e.title, 'reports_to', e.reports_to,
                   'territories', (SELECT coalesce(jsonb_agg(t.territory_description::text
                                                             ORDER BY t.territory_id), '[]')
                                     FROM datalake.employee_territories et
                                     JOIN datalake.territories t ON t.territory_id = et.territory_id
                                    WHERE et.employee_id = e.employee_id))
          FROM datalake.employees e
         WHERE e.employee_id = o.employee_id) AS employee,
       (SELECT jsonb_build_object(
                   'shipper_id', s.shipper_id, 'company_name', s.company_name, 'phone', s.phone)
          FROM datalake.shippers s
         WHERE s.shipper_id = o.ship_via) AS shipper,
       jsonb_build_object(
           'ship_name', o.ship_name, 'ship_address', o.ship_address, 'ship_city', o.ship_city,
           'ship_region', o.ship_region, 'ship_postal_code', o.ship_postal_code,
           'ship_country', o.ship_country, 'freight', round(o.freight::numeric, 2)) AS shipment
  FROM datalake.orders o
 CROSS JOIN LATERAL (
       SELECT jsonb_agg(jsonb_build_object(
                            'order_id', d.order_id, 'product_id', d.product_id,
                            'unit_price', round(d.unit_price::numeric, 2), 'quantity', d.quantity,
                            'discount', round(d.discount::numeric, 2))
                        ORDER BY d.product_id) AS items,
              jsonb_agg(jsonb_build_object(
                            'product_id', p.product_id, 'product_name', p.product_name,
                            'quantity_per_unit', p.quantity_per_unit,
                            'category_id', p.category_id, 'supplier_id', p.supplier_id)
                        ORDER BY d.product_id) FILTER (WHERE p.product_id IS NOT NULL) AS products
         FROM datalake.order_details d
         LEFT JOIN datalake.products p ON p.product_id = d.product_id
        WHERE d.order_id = o.order_id) AS lines;

-- Writes the rows of these orders anew; with only_changed, those whose documents differ. Returns how many.
-- `SELECT datalake.refresh_cdc_events(array_agg(order_id), true) FROM datalake.orders` repairs the whole
-- outbox, for example after a load with triggers disabled.
CREATE FUNCTION datalake.refresh_cdc_events(ids integer[], only_changed boolean DEFAULT false)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    written integer;
BEGIN
    -- First the locks, in one order for everybody, then (a new statement, hence a new snapshot) the reading:
    -- of two transactions that add lines to one order, the second sees the first one's.
    PERFORM FROM datalake.cdc_events WHERE order_id = ANY (ids) ORDER BY order_id FOR UPDATE;

    INSERT INTO datalake.cdc_events AS stored
    SELECT d.*, clock_timestamp() FROM datalake.order_documents d
     WHERE d.order_id = ANY (ids) ORDER BY d.order_id
    ON CONFLICT (order_id) DO UPDATE
       SET (customer_id, order_date, required_date, shipped_date, order_items, products,
            customer, employee, shipper, shipment, updated_at)
         = (excluded.customer_id, excluded.order_date, excluded.required_date, excluded.shipped_date,
            excluded.order_items, excluded.products, excluded.customer, excluded.employee,
            excluded.shipper, excluded.shipment, excluded.updated_at)
     WHERE NOT only_changed
        OR (stored.customer_id, stored.order_date, stored.required_date, stored.shipped_date,
            stored.order_items, stored.products, stored.customer, stored.employee,
            stored.shipper, stored.shipment)
           IS DISTINCT FROM
           (excluded.customer_id, excluded.order_date, excluded.required_date, excluded.shipped_date,
            excluded.order_items, excluded.products, excluded.customer, excluded.employee,
            excluded.shipper, excluded.shipment);
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END
$$;

-- Orders and their lines: a statement writes each order that it touched once, however many lines it changed.

CREATE FUNCTION datalake.orders_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        DELETE FROM datalake.cdc_events;  -- row by row: a TRUNCATE would not reach the stream
    ELSIF TG_OP = 'DELETE' THEN
        DELETE FROM datalake.cdc_events USING old_rows WHERE cdc_events.order_id = old_rows.order_id;
    ELSIF TG_OP = 'UPDATE' THEN
        DELETE FROM datalake.cdc_events USING old_rows
         WHERE cdc_events.order_id = old_rows.order_id
           AND NOT EXISTS (SELECT FROM new_rows WHERE new_rows.order_id = old_rows.order_id);
        PERFORM datalake.refresh_cdc_events(ARRAY(SELECT order_id FROM new_rows));
    ELSE
        PERFORM datalake.refresh_cdc_events(ARRAY(SELECT order_id FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.order_details_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM datalake.refresh_cdc_events(ARRAY(SELECT order_id FROM datalake.orders), only_changed => true);
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM datalake.refresh_cdc_events(ARRAY(SELECT DISTINCT order_id FROM new_rows));
    ELSIF TG_OP = 'DELETE' THEN  -- an order that the same statement deleted has no documents: nothing is written
        PERFORM datalake.refresh_cdc_events(ARRAY(SELECT DISTINCT order_id FROM old_rows));
    ELSE
        PERFORM datalake.refresh_cdc_events(
            ARRAY(SELECT order_id FROM old_rows UNION SELECT order_id FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

-- What orders refer to. Only rows whose documents differ are written, and whoever makes the change is told.

CREATE FUNCTION datalake.reference_changed(source text, ids integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    written integer;
BEGIN
    IF cardinality(ids) = 0 THEN
        RETURN;
    END IF;
    written := datalake.refresh_cdc_events(ids, only_changed => true);
    IF written > 100 THEN  -- a warning reaches the server's log as well
        RAISE WARNING 'a change of datalake.% rewrote % rows of datalake.cdc_events', source, written
            USING HINT = 'Each row is an event downstream; change many rows of it in one statement, not one by one.';
    ELSIF written > 0 THEN
        RAISE NOTICE 'a change of datalake.% rewrote % rows of datalake.cdc_events', source, written;
    END IF;
END
$$;

CREATE FUNCTION datalake.customers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.reference_changed(TG_TABLE_NAME, ARRAY(
        SELECT o.order_id FROM new_rows n
          JOIN old_rows b ON b.customer_id = n.customer_id
          JOIN datalake.orders o ON o.customer_id = n.customer_id
         WHERE (b.company_name, b.contact_name, b.contact_title, b.address, b.city, b.region, b.postal_code,
                b.country, b.phone)
               IS DISTINCT FROM
               (n.company_name, n.contact_name, n.contact_title, n.address, n.city, n.region, n.postal_code,
                n.country, n.phone)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.employees_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.reference_changed(TG_TABLE_NAME, ARRAY(
        SELECT o.order_id FROM new_rows n
          JOIN old_rows b ON b.employee_id = n.employee_id
          JOIN datalake.orders o ON o.employee_id = n.employee_id
         WHERE (b.last_name, b.first_name, b.title, b.reports_to)
               IS DISTINCT FROM (n.last_name, n.first_name, n.title, n.reports_to)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.employee_territories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    employees integer[];
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        employees := ARRAY(SELECT employee_id FROM datalake.employees);
    ELSIF TG_OP = 'INSERT' THEN
        employees := ARRAY(SELECT employee_id FROM new_rows);
    ELSIF TG_OP = 'DELETE' THEN
        employees := ARRAY(SELECT employee_id FROM old_rows);
    ELSE
        employees := ARRAY(SELECT employee_id FROM old_rows UNION SELECT employee_id FROM new_rows);
    END IF;
    PERFORM datalake.reference_changed(
        TG_TABLE_NAME, ARRAY(SELECT order_id FROM datalake.orders WHERE employee_id = ANY (employees)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.territories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.reference_changed(TG_TABLE_NAME, ARRAY(
        SELECT o.order_id FROM new_rows n
          JOIN old_rows b ON b.territory_id = n.territory_id
          JOIN datalake.employee_territories et ON et.territory_id = n.territory_id
          JOIN datalake.orders o ON o.employee_id = et.employee_id
         WHERE b.territory_description IS DISTINCT FROM n.territory_description));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.shippers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.reference_changed(TG_TABLE_NAME, ARRAY(
        SELECT o.order_id FROM new_rows n
          JOIN old_rows b ON b.shipper_id = n.shipper_id
          JOIN datalake.orders o ON o.ship_via = n.shipper_id
         WHERE (b.company_name, b.phone) IS DISTINCT FROM (n.company_name, n.phone)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.products_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE  -- in two steps: most updates of a product are of its stock, and end at the first
    renamed integer[] := ARRAY(
        SELECT n.product_id FROM new_rows n
          JOIN old_rows b ON b.product_id = n.product_id
         WHERE (b.product_name, b.quantity_per_unit, b.category_id, b.supplier_id)
               IS DISTINCT FROM (n.product_name, n.quantity_per_unit, n.category_id, n.supplier_id));
BEGIN
    IF cardinality(renamed) > 0 THEN
        PERFORM datalake.reference_changed(TG_TABLE_NAME, ARRAY(
            SELECT DISTINCT order_id FROM datalake.order_details WHERE product_id = ANY (renamed)));
    END IF;
    RETURN NULL;
END
$$;

SELECT datalake.refresh_cdc_events(ARRAY(SELECT order_id FROM datalake.orders));

-- A trigger with transition tables takes one kind of statement, hence one each. Inserts and deletes of
-- customers, employees, shippers and products need none: the foreign keys let no order refer to them then.

CREATE TRIGGER outbox_insert AFTER INSERT ON datalake.orders
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.orders
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();
CREATE TRIGGER outbox_delete AFTER DELETE ON datalake.orders
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();
CREATE TRIGGER outbox_truncate AFTER TRUNCATE ON datalake.orders
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.orders_to_outbox();

CREATE TRIGGER outbox_insert AFTER INSERT ON datalake.order_details
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.order_details
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();
CREATE TRIGGER outbox_delete AFTER DELETE ON datalake.order_details
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();
CREATE TRIGGER outbox_truncate AFTER TRUNCATE ON datalake.order_details
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.order_details_to_outbox();

CREATE TRIGGER outbox_insert AFTER INSERT ON datalake.employee_territories
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.employee_territories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();
CREATE TRIGGER outbox_delete AFTER DELETE ON datalake.employee_territories
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();
CREATE TRIGGER outbox_truncate AFTER TRUNCATE ON datalake.employee_territories
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employee_territories_to_outbox();

CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.customers
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.customers_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.employees
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.employees_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.territories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.territories_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.shippers
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.shippers_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.products
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.products_to_outbox();

CREATE PUBLICATION cdc_publication FOR TABLE datalake.cdc_events;
