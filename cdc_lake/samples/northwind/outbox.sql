-- The outbox: one row an order, with everything about it as documents, for the change stream to carry.
-- It works on the tables of schema.sql and on the original Northwind scripts (smallint ids, bpchar keys).
--
-- The rule that everything below keeps: cdc_events equals the view order_documents, at every commit.
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
-- stays out, so that changing it rewrites nothing here. A product's category and supplier are in its document
-- under their own columns' names, as in the original's outbox. A `real` is read through float8, since a cast
-- of `real` to numeric keeps six digits only (12500.55 becomes 12500.5); rounding to two decimals removes
-- the binary noise: 9.80, 0.15.
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
                   'postal_code', c.postal_code, 'country', c.country, 'phone', c.phone, 'fax', c.fax)
          FROM datalake.customers c
         WHERE c.customer_id = o.customer_id) AS customer,
       (SELECT jsonb_build_object(
                   'employee_id', e.employee_id, 'last_name', e.last_name, 'first_name', e.first_name,
                   'title', e.title, 'hire_date', e.hire_date, 'city', e.city, 'country', e.country,
                   'extension', e.extension, 'reports_to', e.reports_to,
                   'territories', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                                                       'territory_description', t.territory_description::text,
                                                       'region_description', r.region_description::text)
                                                   ORDER BY t.territory_id), '[]')
                                     FROM datalake.employee_territories et
                                     JOIN datalake.territories t ON t.territory_id = et.territory_id
                                     JOIN datalake.region r ON r.region_id = t.region_id
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
           'ship_country', o.ship_country, 'freight', round(o.freight::float8::numeric, 2)) AS shipment
  FROM datalake.orders o
 CROSS JOIN LATERAL (
       SELECT jsonb_agg(jsonb_build_object(
                            'order_id', d.order_id, 'product_id', d.product_id,
                            'unit_price', round(d.unit_price::float8::numeric, 2), 'quantity', d.quantity,
                            'discount', round(d.discount::float8::numeric, 2))
                        ORDER BY d.product_id) AS items,
              jsonb_agg(jsonb_build_object(
                            'product_id', p.product_id, 'product_name', p.product_name,
                            'quantity_per_unit', p.quantity_per_unit,
                            'category_id', p.category_id, 'category_name', c.category_name,
                            'description', c.description,
                            'supplier_id', p.supplier_id, 'company_name', s.company_name,
                            'city', s.city, 'country', s.country)
                        ORDER BY d.product_id) FILTER (WHERE p.product_id IS NOT NULL) AS products
         FROM datalake.order_details d
         LEFT JOIN datalake.products p ON p.product_id = d.product_id
         LEFT JOIN datalake.categories c ON c.category_id = p.category_id
         LEFT JOIN datalake.suppliers s ON s.supplier_id = p.supplier_id
        WHERE d.order_id = o.order_id) AS lines;

-- Writes the rows of these orders, and deletes the rows of those that are gone; with only_changed, writes only
-- the rows whose documents differ. Returns how many it wrote.
-- `SELECT datalake.refresh_cdc_events(array_agg(order_id), true) FROM datalake.orders` repairs the whole
-- outbox, for example after a load with triggers disabled. The view joins a dozen tables: planning it for each
-- call takes longer than reading one order, hence the generic plan.
CREATE FUNCTION datalake.refresh_cdc_events(ids integer[], only_changed boolean DEFAULT false)
RETURNS integer LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    written integer;
BEGIN
    -- First the locks, in the order of the keys, then (a new statement, hence a new snapshot) the reading:
    -- of two transactions that add lines to one order, the second sees the first one's.
    PERFORM FROM datalake.cdc_events WHERE order_id = ANY (ids) ORDER BY order_id FOR UPDATE;

    DELETE FROM datalake.cdc_events AS stored
     WHERE stored.order_id = ANY (ids)
       AND NOT EXISTS (SELECT FROM datalake.orders o WHERE o.order_id = stored.order_id);

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

-- Statements only note what they changed, in a table that is empty after each commit; a deferred trigger
-- writes the outbox once, when the transaction commits. So a transaction locks the rows of the outbox in the
-- order of their keys, whatever the order of its statements: two transactions that add lines to the same
-- orders do not deadlock over them.
CREATE UNLOGGED TABLE datalake.cdc_events_pending (
    txid        bigint NOT NULL DEFAULT txid_current(),
    first       boolean NOT NULL,  -- of the rows that wait for this transaction's commit: one has the trigger fire
    changed     text NOT NULL,     -- the table
    keys        text[] NOT NULL    -- of `changed`; of order_details and employee_territories: the first key column
);
CREATE INDEX ON datalake.cdc_events_pending (txid);

CREATE FUNCTION datalake.note_changes(changed text, keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(keys) > 0 THEN
        INSERT INTO datalake.cdc_events_pending (first, changed, keys)
        SELECT NOT EXISTS (SELECT FROM datalake.cdc_events_pending WHERE txid = txid_current()), changed, keys;
    END IF;
END
$$;

-- The orders whose documents show these rows of a table.
CREATE FUNCTION datalake.orders_showing(changed text, keys text[]) RETURNS SETOF integer
LANGUAGE plpgsql STABLE AS $$
DECLARE
    ids integer[] := CASE WHEN changed NOT IN ('customers', 'territories') THEN keys::integer[] END;
BEGIN
    CASE changed
    WHEN 'customers' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o WHERE o.customer_id::text = ANY (keys);
    WHEN 'employees', 'employee_territories' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o WHERE o.employee_id = ANY (ids);
    WHEN 'territories' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o
                       JOIN datalake.employee_territories et ON et.employee_id = o.employee_id
                      WHERE et.territory_id = ANY (keys);
    WHEN 'region' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o
                       JOIN datalake.employee_territories et ON et.employee_id = o.employee_id
                       JOIN datalake.territories t ON t.territory_id = et.territory_id
                      WHERE t.region_id = ANY (ids);
    WHEN 'shippers' THEN
        RETURN QUERY SELECT o.order_id::integer FROM datalake.orders o WHERE o.ship_via = ANY (ids);
    WHEN 'products' THEN
        RETURN QUERY SELECT d.order_id::integer FROM datalake.order_details d WHERE d.product_id = ANY (ids);
    WHEN 'categories' THEN
        RETURN QUERY SELECT d.order_id::integer FROM datalake.order_details d
                       JOIN datalake.products p ON p.product_id = d.product_id WHERE p.category_id = ANY (ids);
    WHEN 'suppliers' THEN
        RETURN QUERY SELECT d.order_id::integer FROM datalake.order_details d
                       JOIN datalake.products p ON p.product_id = d.product_id WHERE p.supplier_id = ANY (ids);
    END CASE;
END
$$;

-- Orders and their lines are always written. Of what orders refer to, only rows whose documents differ are
-- written, and the client that commits the change gets a message with their number.
CREATE FUNCTION datalake.pending_to_outbox() RETURNS trigger
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    orders integer[];
    referring integer[];
    sources text;
    written integer;
BEGIN
    WITH pending AS (
        DELETE FROM datalake.cdc_events_pending WHERE txid = txid_current() RETURNING changed, keys),
    keys AS (SELECT DISTINCT changed, unnest(keys) AS key FROM pending),
    tables AS (
        SELECT changed NOT IN ('orders', 'order_details') AS refers, changed, array_agg(key) AS keys
          FROM keys GROUP BY changed)
    SELECT ARRAY(SELECT DISTINCT unnest(keys)::integer FROM tables WHERE NOT refers),
           ARRAY(SELECT datalake.orders_showing(changed, keys) FROM tables WHERE refers),
           (SELECT string_agg('datalake.' || changed, ', ' ORDER BY changed) FROM tables WHERE refers)
      INTO orders, referring, sources;

    IF cardinality(referring) = 0 THEN
        PERFORM datalake.refresh_cdc_events(orders);
        RETURN NULL;
    END IF;
    PERFORM FROM datalake.cdc_events WHERE order_id = ANY (orders || referring) ORDER BY order_id FOR UPDATE;
    PERFORM datalake.refresh_cdc_events(orders);
    written := datalake.refresh_cdc_events(referring, only_changed => true);
    IF written > 100 THEN  -- a warning reaches the server's log as well
        RAISE WARNING 'a change of % rewrote % rows of datalake.cdc_events', sources, written
            USING HINT = 'Each row is an event downstream; change many rows of it in one transaction.';
    ELSIF written > 0 THEN
        RAISE NOTICE 'a change of % rewrote % rows of datalake.cdc_events', sources, written;
    END IF;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER write_outbox AFTER INSERT ON datalake.cdc_events_pending
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.first) EXECUTE FUNCTION datalake.pending_to_outbox();

-- What the statements note.

CREATE FUNCTION datalake.orders_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN  -- their rows are deleted one by one: a TRUNCATE would not reach the stream
        PERFORM datalake.note_changes('orders', ARRAY(SELECT order_id::text FROM datalake.cdc_events));
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM datalake.note_changes('orders', ARRAY(SELECT order_id::text FROM new_rows));
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM datalake.note_changes('orders', ARRAY(SELECT order_id::text FROM old_rows));
    ELSE
        PERFORM datalake.note_changes('orders', ARRAY(
            SELECT order_id::text FROM old_rows UNION SELECT order_id::text FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.order_details_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM datalake.note_changes('order_details', ARRAY(
            SELECT order_id::text FROM datalake.cdc_events WHERE order_items <> '[]'));
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM datalake.note_changes('order_details', ARRAY(SELECT DISTINCT order_id::text FROM new_rows));
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM datalake.note_changes('order_details', ARRAY(SELECT DISTINCT order_id::text FROM old_rows));
    ELSE
        PERFORM datalake.note_changes('order_details', ARRAY(
            SELECT order_id::text FROM old_rows UNION SELECT order_id::text FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.employee_territories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(SELECT employee_id::text FROM datalake.employees));
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(SELECT employee_id::text FROM new_rows));
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(SELECT employee_id::text FROM old_rows));
    ELSE
        PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
            SELECT employee_id::text FROM old_rows UNION SELECT employee_id::text FROM new_rows));
    END IF;
    RETURN NULL;
END
$$;

-- What orders refer to, where a column that the documents show has changed: an update of a product's stock
-- notes nothing.

CREATE FUNCTION datalake.customers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.customer_id::text FROM new_rows n JOIN old_rows b ON b.customer_id = n.customer_id
         WHERE (b.company_name, b.contact_name, b.contact_title, b.address, b.city, b.region,
                b.postal_code, b.country, b.phone, b.fax)
               IS DISTINCT FROM
               (n.company_name, n.contact_name, n.contact_title, n.address, n.city, n.region,
                n.postal_code, n.country, n.phone, n.fax)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.employees_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.employee_id::text FROM new_rows n JOIN old_rows b ON b.employee_id = n.employee_id
         WHERE (b.last_name, b.first_name, b.title, b.hire_date, b.city, b.country,
                b.extension, b.reports_to)
               IS DISTINCT FROM
               (n.last_name, n.first_name, n.title, n.hire_date, n.city, n.country,
                n.extension, n.reports_to)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.territories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.territory_id::text FROM new_rows n JOIN old_rows b ON b.territory_id = n.territory_id
         WHERE (b.territory_description, b.region_id)
               IS DISTINCT FROM
               (n.territory_description, n.region_id)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.region_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.region_id::text FROM new_rows n JOIN old_rows b ON b.region_id = n.region_id
         WHERE (b.region_description) IS DISTINCT FROM (n.region_description)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.shippers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.shipper_id::text FROM new_rows n JOIN old_rows b ON b.shipper_id = n.shipper_id
         WHERE (b.company_name, b.phone) IS DISTINCT FROM (n.company_name, n.phone)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.products_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.product_id::text FROM new_rows n JOIN old_rows b ON b.product_id = n.product_id
         WHERE (b.product_name, b.quantity_per_unit, b.category_id, b.supplier_id)
               IS DISTINCT FROM
               (n.product_name, n.quantity_per_unit, n.category_id, n.supplier_id)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.categories_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.category_id::text FROM new_rows n JOIN old_rows b ON b.category_id = n.category_id
         WHERE (b.category_name, b.description) IS DISTINCT FROM (n.category_name, n.description)));
    RETURN NULL;
END
$$;

CREATE FUNCTION datalake.suppliers_to_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM datalake.note_changes(TG_TABLE_NAME, ARRAY(
        SELECT n.supplier_id::text FROM new_rows n JOIN old_rows b ON b.supplier_id = n.supplier_id
         WHERE (b.company_name, b.city, b.country)
               IS DISTINCT FROM
               (n.company_name, n.city, n.country)));
    RETURN NULL;
END
$$;

SELECT datalake.refresh_cdc_events(ARRAY(SELECT order_id FROM datalake.orders));

-- A trigger with transition tables takes one kind of statement, hence one each. Inserts and deletes of
-- what orders refer to need none: the foreign keys let no order refer to such a row then.

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
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.region
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.region_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.categories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.categories_to_outbox();
CREATE TRIGGER outbox_update AFTER UPDATE ON datalake.suppliers
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION datalake.suppliers_to_outbox();

CREATE PUBLICATION cdc_publication FOR TABLE datalake.cdc_events;
